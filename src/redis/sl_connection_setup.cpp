#include "redis/sl_connection_setup.h"

#include "redis/sl_redis_connection.h"
#include "redis/sl_redis_log.h"
#include "redis/sl_redis_login.h"
#include "redis/sl_redis_script.h"
#include "redis/sl_script_call.h"

namespace sl {

ConnectionSetup::ConnectionSetup(const RedisSettings &settings,
                                 RedisConnection &connection,
                                 RedisUser &user) noexcept
    : settings_(settings), connection_(connection), user_(user), unanswered_(0),
      probe_(Probe::kNoKey), script_loading_(false), command_{{on_reply}, this},
      knock_command_{{on_knock}, this}, login_command_{{on_login}, this},
      new_login_command_{{on_new_login}, this}, role_command_{{on_role}, this},
      script_command_{{on_script}, this}, probe_command_{{on_probe}, this}
{}

bool ConnectionSetup::start() noexcept
{
    unanswered_ = 0;

    return send_login() && send_select() && send_role()
           && (unanswered_ > 0 || knock());
}

/*
 * Where there is nothing to be said before the script, a short one stands in
 * for it: to load that takes the same right and no other, gets through the same
 * proxies, and is refused with the same words. PING may be forbidden to a user
 * who may do all that is needed, and proxies answer it without asking a server;
 * and that a call of a script which is not there fails proves nothing.
 */
bool ConnectionSetup::knock() noexcept
{
    unanswered_++;

    return connection_.send(&knock_command_, {"SCRIPT", "LOAD", "return 1"});
}

bool ConnectionSetup::send_login() noexcept
{
    if (settings_.login.password == nullptr) {
        return true;
    }

    unanswered_++;

    return connection_.send_login(&login_command_);
}

bool ConnectionSetup::send_new_login() noexcept
{
    const RedisPassword *password = settings_.login.password;

    return password == nullptr || password->file().len == 0
           || connection_.send_login(&new_login_command_);
}

bool ConnectionSetup::send_select() noexcept
{
    if (settings_.db == 0) {
        return true;
    }

    u_char db[NGX_INT_T_LEN];
    u_char *end = ngx_sprintf(db, "%ui", settings_.db);

    unanswered_++;

    return connection_.send(&knock_command_, {"SELECT", view(db, end)});
}

bool ConnectionSetup::send_role() noexcept
{
    if (settings_.topology != Topology::kSentinel) {
        return true;
    }

    unanswered_++;

    return connection_.send(&role_command_, {"ROLE"});
}

bool ConnectionSetup::send_script() noexcept
{
    if (!script_loading_) {
        script_loading_ = connection_.send(&script_command_,
                                           {"SCRIPT", "LOAD", script_text()});
    }

    return script_loading_;
}

bool ConnectionSetup::send_asking() noexcept
{
    return connection_.send(&command_, {"ASKING"});
}

bool ConnectionSetup::send_first_probe() noexcept
{
    RedisKey key;

    if (!user_.probe_key(&key)) {
        probe_ = Probe::kNoKey;
        return send_probe(0);
    }

    if (!user_.other_probe_key(&key)) {
        probe_ = Probe::kOneKey;
        return send_probe(1);
    }

    probe_ = Probe::kTwoKeys;
    return send_probe(2);
}

/* A key that there is not any more is left out. */
bool ConnectionSetup::send_probe(size_t keys) noexcept
{
    RedisKey list[2];
    size_t count = 0;

    count += keys > 0 && user_.probe_key(&list[0]);
    count += keys > 1 && user_.other_probe_key(&list[count]);

    return connection_.send_probe(&probe_command_, list, count);
}

/* ---- replies ---- */

void ConnectionSetup::on_reply(RedisCommand *self, redisReply *reply) noexcept
{
    if (reply != nullptr && reply->type == REDIS_REPLY_ERROR) {
        static_cast<SetupCommand *>(self)->setup->refused(text_of(reply));
    }
}

void ConnectionSetup::refused(std::string_view error) noexcept
{
    constexpr std::string_view kCrowded = "ERR max number of clients";

    RedisError kind = classify_redis_error(error);

    if (kind == RedisError::kElsewhere) {
        connection_.fail(Trouble::kElsewhere, error);
        return;
    }

    if (kind == RedisError::kNoScripting) {
        connection_.fail(Trouble::kNoScripting, error);
        return;
    }

    /* whatever else Redis says no to here, waiting does not mend it */
    bool unavailable = kind == RedisError::kUnavailable
                       || error.substr(0, kCrowded.size()) == kCrowded;

    connection_.fail(unavailable ? Trouble::kUnavailable : Trouble::kForbidden,
                     error);
}

void ConnectionSetup::on_knock(RedisCommand *self, redisReply *reply) noexcept
{
    on_reply(self, reply);

    if (reply != nullptr && reply->type != REDIS_REPLY_ERROR) {
        static_cast<SetupCommand *>(self)->setup->knock_answered();
    }
}

void ConnectionSetup::knock_answered() noexcept
{
    unanswered_--;

    if (unanswered_ > 0) {
        return;
    }

    if (send_script() && send_first_probe()) {
        user_.let_in();
    } else {
        connection_.fail(Trouble::kLocal, "out of memory");
    }
}

void ConnectionSetup::on_login(RedisCommand *self, redisReply *reply) noexcept
{
    if (reply != nullptr && reply->type == REDIS_REPLY_ERROR) {
        static_cast<SetupCommand *>(self)->setup->refused(
            refusal_of_login(reply));
        return;
    }

    on_knock(self, reply);
}

void ConnectionSetup::on_new_login(RedisCommand *self,
                                   redisReply *reply) noexcept
{
    if (reply != nullptr && reply->type == REDIS_REPLY_ERROR) {
        static_cast<SetupCommand *>(self)->setup->new_login_refused(
            refusal_of_login(reply));
    }
}

/* Redis lets a client that was logged in stay so. */
void ConnectionSetup::new_login_refused(std::string_view error) noexcept
{
    RedisPassword &password = *settings_.login.password;

    connection_.new_login_refused();

    if (!password.note_refusal()) {
        return;
    }

    OneLine line(error, settings_);
    ngx_str_t why = str(line.text());

    ngx_log_error(NGX_LOG_CRIT, ngx_cycle->log, 0,
                  "sliding_limit: redis \"%V\" refuses the new password in "
                  "password_file \"%V\": %V; open connections stay logged in "
                  "with the old one",
                  &settings_.name, &password.file(), &why);
}

void ConnectionSetup::on_script(RedisCommand *self, redisReply *reply) noexcept
{
    static_cast<SetupCommand *>(self)->setup->script_loading_ = false;

    on_reply(self, reply);
}

/* Sentinels may be behind the times. */
void ConnectionSetup::on_role(RedisCommand *self, redisReply *reply) noexcept
{
    if (reply != nullptr && reply->type == REDIS_REPLY_ARRAY
        && reply->elements > 0 && reply->element[0]->type == REDIS_REPLY_STRING
        && text_of(reply->element[0]) != "master")
    {
        static_cast<SetupCommand *>(self)->setup->connection_.fail(
            Trouble::kUnavailable,
            "Sentinel names a server that is not the primary");
        return;
    }

    on_knock(self, reply);
}

void ConnectionSetup::on_probe(RedisCommand *self, redisReply *reply) noexcept
{
    ConnectionSetup *setup = static_cast<SetupCommand *>(self)->setup;

    if (reply == nullptr) {
        return;
    }

    if (reply->type == REDIS_REPLY_ERROR) {
        setup->probe_refused(text_of(reply));
        return;
    }

    if (reply->type != REDIS_REPLY_STRING) {
        setup->connection_.fail(Trouble::kUnreachable,
                                "its answers are not those of a Redis");
        return;
    }

    setup->probe_answered();
}

void ConnectionSetup::probe_answered() noexcept
{
    if (probe_ == Probe::kOneBeforeTwo) {
        probe_ = Probe::kTwoAgain;
    } else {
        set_up(probe_ == Probe::kOneOfTwo);
    }
}

void ConnectionSetup::probe_refused(std::string_view error) noexcept
{
    RedisError kind = classify_redis_error(error);
    bool may_be_slots =
        kind == RedisError::kCrossSlot || kind == RedisError::kThisCall;

    if (probe_ == Probe::kTwoKeys && may_be_slots) {
        probe_again(kind);

    } else if (probe_ == Probe::kTwoAgain && may_be_slots) {
        set_up(true);

    } else if (kind == RedisError::kElsewhere
               && settings_.topology == Topology::kCluster)
    {
        /* what is known of a cluster's slots may be out of date */
        set_up(false);

    } else {
        refused(error);
    }
}

/*
 * Proxies have words of their own for keys of different slots. But an error
 * that does not speak of slots may have come by chance: so it has to come
 * twice.
 */
void ConnectionSetup::probe_again(RedisError because) noexcept
{
    bool is_certain = because == RedisError::kCrossSlot;

    probe_ = is_certain ? Probe::kOneOfTwo : Probe::kOneBeforeTwo;

    if (!send_probe(1) || (!is_certain && !send_probe(2))) {
        connection_.fail(Trouble::kLocal, "out of memory");
    }
}

void ConnectionSetup::set_up(bool has_slots) noexcept
{
    if (has_slots) {
        user_.found_slots();
    }

    connection_.set_up();
}

}  // namespace sl
