#include "redis/sl_redis_connection.h"

#include "redis/pure/sl_redis_error.h"
#include "redis/sl_redis_adapter.h"
#include "redis/sl_redis_script.h"
#include "redis/sl_script_call.h"

namespace sl {

namespace {

/*
 * A connection this old that Redis closes is replaced at once: it has merely
 * been cleaned up. With a younger one that could turn into a storm.
 */
constexpr ngx_msec_t kSettledMs = 1000;

/* Nothing on the way is to see it silent for ten seconds, even if this is said
 * late; and Redis hardly notices. */
constexpr ngx_msec_t kMaxSilenceMs = 5000;

}  // namespace

RedisConnection::RedisConnection(const RedisSettings &settings,
                                 RedisLocator &locator,
                                 RedisUser &user) noexcept
    : settings_(settings), locator_(locator), user_(user),
      state_(State::kClosed), ac_(nullptr), timer_(), is_locating_(false),
      host_(), name_(), port_(0), began_(0), up_since_(0), heard_at_(0),
      has_been_up_(false), probe_(Probe::kOneKey), awaits_sign_(false),
      script_loading_(false), setup_command_(), auth_command_(),
      script_command_(), role_command_(), probe_command_(), sign_command_()
{
    setup_command_.on_reply = on_setup_reply;
    setup_command_.connection = this;
    auth_command_.on_reply = on_auth_reply;
    auth_command_.connection = this;
    script_command_.on_reply = on_script_reply;
    script_command_.connection = this;
    role_command_.on_reply = on_role_reply;
    role_command_.connection = this;
    probe_command_.on_reply = on_probe_reply;
    probe_command_.connection = this;
    sign_command_.on_reply = on_sign_of_life;
    sign_command_.connection = this;

    /* a worker that has nothing else to do need not stay for it */
    timer_.cancelable = 1;
    timer_.handler = on_timer;
    timer_.data = this;
}

void RedisConnection::open() noexcept
{
    timer_.log = ngx_cycle->log;
    state_ = State::kStarting;

    connect();
}

void RedisConnection::reopen() noexcept
{
    if (state_ == State::kDown && ac_ == nullptr && !is_locating_) {
        connect();
    }
}

void RedisConnection::close() noexcept
{
    state_ = State::kClosed;

    stop_timer();
    drop_context();
}

bool RedisConnection::send(RedisCommand *command, const char *text,
                           size_t size) noexcept
{
    return ac_ != nullptr
           && redisAsyncFormattedCommand(ac_, on_reply, command, text, size)
                  == REDIS_OK;
}

void RedisConnection::read_waiting_input() noexcept
{
    if (ac_ != nullptr) {
        sl::read_waiting_input(ac_);
    }
}

void RedisConnection::write_waiting_output() noexcept
{
    if (ac_ != nullptr) {
        sl::write_waiting_output(ac_);
    }
}

bool RedisConnection::leads_to(const RedisEndpoint &endpoint) const noexcept
{
    bool has_name = endpoint.name.len > 0 && view(endpoint.name) == name_;

    return endpoint.port == port_ && (has_name || view(endpoint.host) == host_);
}

void RedisConnection::renew() noexcept
{
    if (state_ == State::kUp) {
        open_another();
    }
}

void RedisConnection::open_another() noexcept
{
    state_ = State::kStarting;
    drop_context();
    connect();
}

bool RedisConnection::send_script() noexcept
{
    if (!script_loading_) {
        script_loading_ =
            send(&script_command_, {"SCRIPT", "LOAD", script_text()});
    }

    return script_loading_;
}

void RedisConnection::fail(Trouble trouble, std::string_view reason) noexcept
{
    go_down(trouble, reason);
    drop_context();
}

void RedisConnection::replace(std::string_view reason) noexcept
{
    if (!is_settled()) {
        fail(Trouble::kUnreachable, reason);
        return;
    }

    ngx_str_t why = str(reason);

    ngx_log_error(NGX_LOG_INFO, ngx_cycle->log, 0,
                  "sliding_limit: redis \"%V\": %V, opening another connection",
                  &settings_.name, &why);

    user_.reconnecting();
    open_another();
}

void RedisConnection::connect() noexcept
{
    stop_timer();

    awaits_sign_ = false;
    began_ = ngx_current_msec;
    is_locating_ = true;

    locator_.locate(*this);
}

void RedisConnection::not_located(Trouble trouble,
                                  std::string_view reason) noexcept
{
    is_locating_ = false;

    go_down(trouble, reason);
}

void RedisConnection::located(const RedisEndpoint &where) noexcept
{
    is_locating_ = false;
    port_ = where.port;
    ngx_cpystrn(reinterpret_cast<u_char *>(host_), where.host.data,
                sizeof(host_));
    name_[view(where.name).copy(name_, sizeof(name_) - 1)] = '\0';

    OpenedContext opened = open_context(where, settings_.tls, on_shutdown);

    if (opened.ac == nullptr) {
        go_down(opened.trouble, opened.reason);
        return;
    }

    ac_ = opened.ac;
    ac_->data = this;

    ngx_add_timer(&timer_, settings_.connect_timeout);

    redisAsyncSetDisconnectCallback(ac_, on_disconnect);
    /* last: it asks for the write event that tells when the socket is open */
    redisAsyncSetConnectCallback(ac_, on_connect);

    if (!send_setup()) {
        fail(Trouble::kLocal, "out of memory");
    }
}

/* Everything at once, before the connection is even open: one round trip. */
bool RedisConnection::send_setup() noexcept
{
    return send_login() && send_select()
           && (settings_.topology != Topology::kSentinel
               || send(&role_command_, {"ROLE"}))
           && send_script() && send_probe();
}

bool RedisConnection::send_login() noexcept
{
    const RedisLogin &login = settings_.login;

    if (login.password.len == 0) {
        return true;
    }

    return login.user.len
               ? send(&auth_command_,
                      {"AUTH", view(login.user), view(login.password)})
               : send(&auth_command_, {"AUTH", view(login.password)});
}

bool RedisConnection::send_select() noexcept
{
    u_char db[NGX_INT_T_LEN];
    size_t size = ngx_sprintf(db, "%ui", settings_.db) - db;

    return settings_.db == 0
           || send(&setup_command_,
                   {"SELECT", {reinterpret_cast<char *>(db), size}});
}

/* Of two keys, where that should be possible: if it is not, that is better
 * known before there are requests. */
bool RedisConnection::send_probe() noexcept
{
    RedisKey keys[2];
    size_t count = user_.probe_key(&keys[0]) ? 1 : 0;

    if (count == 1 && user_.other_probe_key(&keys[1])) {
        count = 2;
    }

    probe_ = count == 2 ? Probe::kTwoKeys : Probe::kOneKey;

    return send_probe_of(keys, count, &probe_command_);
}

bool RedisConnection::send_probe_of(const RedisKey *keys, size_t count,
                                    RedisCommand *command) noexcept
{
    char room[ScriptText::kMaxSize];
    ScriptText call(ScriptArgs::probe(keys, count), room,
                    ScriptText::Form::kFull);

    return send(command, call.all().data(), call.all().size());
}

bool RedisConnection::send_asking() noexcept
{
    return send(&setup_command_, {"ASKING"});
}

bool RedisConnection::send(
    RedisCommand *command,
    std::initializer_list<std::string_view> words) noexcept
{
    constexpr size_t kMaxWords = 4;

    const char *argv[kMaxWords];
    size_t argvlen[kMaxWords];
    size_t argc = 0;

    for (std::string_view word : words) {
        argv[argc] = word.data();
        argvlen[argc++] = word.size();
    }

    return ac_ != nullptr
           && redisAsyncCommandArgv(ac_, on_reply, command,
                                    static_cast<int>(argc), argv, argvlen)
                  == REDIS_OK;
}

void RedisConnection::on_setup_reply(RedisCommand *self,
                                     redisReply *reply) noexcept
{
    RedisConnection *c = static_cast<SetupCommand *>(self)->connection;

    if (reply != nullptr && reply->type == REDIS_REPLY_ERROR) {
        c->setup_failed(text_of(reply));
    }
}

void RedisConnection::setup_failed(std::string_view error) noexcept
{
    constexpr std::string_view kCrowded = "ERR max number of clients";

    RedisError kind = classify_redis_error(error);

    if (kind == RedisError::kElsewhere) {
        fail(Trouble::kElsewhere, error);
        return;
    }

    /* whatever else Redis says no to here, waiting does not mend it */
    bool unavailable = kind == RedisError::kUnavailable
                       || error.substr(0, kCrowded.size()) == kCrowded;

    fail(unavailable ? Trouble::kUnavailable : Trouble::kForbidden, error);
}

/* A server that does not know AUTH may repeat its arguments: not in the log. */
void RedisConnection::on_auth_reply(RedisCommand *self,
                                    redisReply *reply) noexcept
{
    RedisConnection *c = static_cast<SetupCommand *>(self)->connection;

    if (reply != nullptr && reply->type == REDIS_REPLY_ERROR) {
        std::string_view text = text_of(reply);

        c->setup_failed(text.substr(0, text.find(", with args")));
    }
}

void RedisConnection::on_script_reply(RedisCommand *self,
                                      redisReply *reply) noexcept
{
    static_cast<SetupCommand *>(self)->connection->script_loading_ = false;

    on_setup_reply(self, reply);
}

/* Sentinels may be behind the times. */
void RedisConnection::on_role_reply(RedisCommand *self,
                                    redisReply *reply) noexcept
{
    RedisConnection *c = static_cast<SetupCommand *>(self)->connection;

    if (reply != nullptr && reply->type == REDIS_REPLY_ARRAY
        && reply->elements > 0 && reply->element[0]->type == REDIS_REPLY_STRING
        && text_of(reply->element[0]) != "master")
    {
        c->fail(Trouble::kUnavailable,
                "Sentinel names a server that is not the primary");
        return;
    }

    on_setup_reply(self, reply);
}

void RedisConnection::on_probe_reply(RedisCommand *self,
                                     redisReply *reply) noexcept
{
    RedisConnection *c = static_cast<SetupCommand *>(self)->connection;

    /* what is known of a cluster's slots may be out of date */
    bool is_elsewhere =
        reply != nullptr && reply->type == REDIS_REPLY_ERROR
        && c->settings_.topology == Topology::kCluster
        && classify_redis_error(text_of(reply)) == RedisError::kElsewhere;

    if (is_elsewhere || (reply != nullptr && reply->type == REDIS_REPLY_ARRAY))
    {
        c->set_up();

    } else if (reply != nullptr && reply->type != REDIS_REPLY_ERROR) {
        c->fail(Trouble::kUnreachable, "its answers are not those of a Redis");

    } else if (reply != nullptr) {
        c->probe_refused(text_of(reply));
    }
}

/* Perhaps only because it was about two keys; proxies differ in how they say
 * so. */
void RedisConnection::probe_refused(std::string_view error) noexcept
{
    RedisError kind = classify_redis_error(error);
    RedisKey key;

    if (probe_ != Probe::kTwoKeys
        || (kind != RedisError::kCrossSlot && kind != RedisError::kThisCall))
    {
        setup_failed(error);
        return;
    }

    probe_ = Probe::kOneOfTwo;

    if (!user_.probe_key(&key) || !send_probe_of(&key, 1, &probe_command_)) {
        fail(Trouble::kLocal, "out of memory");
    }
}

void RedisConnection::set_up() noexcept
{
    stop_timer();

    if (port_ != 0) {
        watch_peer(ac_);
    }

    if (probe_ == Probe::kOneOfTwo) {
        user_.found_slots();
    }

    state_ = State::kUp;
    up_since_ = ngx_current_msec;
    has_been_up_ = true;
    ngx_add_timer(&timer_, kMaxSilenceMs);

    user_.connected();
}

bool RedisConnection::is_settled() const noexcept
{
    return state_ == State::kUp && ngx_current_msec - up_since_ >= kSettledMs;
}

/* `ac` goes away by itself: its socket failed or was closed by Redis. */
void RedisConnection::lost(redisAsyncContext *ac) noexcept
{
    ac_ = nullptr;

    /* a reset, if there were commands that Redis had not read yet */
    if (is_settled()
        && (ac->c.err == REDIS_ERR_EOF || ac->c.err == REDIS_ERR_IO)) {
        ngx_log_error(NGX_LOG_INFO, ngx_cycle->log, 0,
                      "sliding_limit: redis \"%V\" closed the connection, "
                      "opening another",
                      &settings_.name);

        state_ = State::kStarting;
        user_.reconnecting();
        connect();
        return;
    }

    go_down(Trouble::kUnreachable, reason_of(ac, has_been_up_));
}

/* Something without effect, which a user with the least rights may say. */
void RedisConnection::break_silence() noexcept
{
    ngx_msec_t silence = ngx_current_msec - heard_at_;

    if (awaits_sign_) {
        replace("it does not reply");

    } else if (silence < kMaxSilenceMs) {
        ngx_add_timer(&timer_, kMaxSilenceMs - silence);

    } else if (send_probe_of(nullptr, 0, &sign_command_)) {
        awaits_sign_ = true;
        /* as long as a check may stay unanswered */
        ngx_add_timer(&timer_, 2 * settings_.timeout);

    } else {
        fail(Trouble::kLocal, "out of memory");
    }
}

/* Whatever it says. */
void RedisConnection::on_sign_of_life(RedisCommand *self,
                                      redisReply *reply) noexcept
{
    RedisConnection *c = static_cast<SetupCommand *>(self)->connection;

    if (reply != nullptr) {
        c->awaits_sign_ = false;
        c->stop_timer();
        ngx_add_timer(&c->timer_, kMaxSilenceMs);
    }
}

void RedisConnection::go_down(Trouble trouble, std::string_view reason) noexcept
{
    if (state_ == State::kClosed) {
        return;
    }

    ngx_msec_t began = state_ == State::kUp ? 0 : began_;

    state_ = State::kDown;
    stop_timer();

    user_.disconnected(trouble, reason, began);
}

void RedisConnection::stop_timer() noexcept
{
    if (timer_.timer_set) {
        ngx_del_timer(&timer_);
    }
}

void RedisConnection::drop_context() noexcept
{
    if (is_locating_) {
        is_locating_ = false;
        locator_.cancel();
    }

    redisAsyncContext *ac = ac_;

    if (ac == nullptr) {
        return;
    }

    /* our doing: on_disconnect() need not tell us */
    ac_ = nullptr;
    ac->data = nullptr;

    redisAsyncFree(ac);
}

/* A failed connection is freed by hiredis itself, right after this. */
void RedisConnection::on_connect(const redisAsyncContext *ac,
                                 int status) noexcept
{
    auto *c = static_cast<RedisConnection *>(ac->data);

    if (status != REDIS_OK && c != nullptr) {
        c->lost(const_cast<redisAsyncContext *>(ac));
    }
}

void RedisConnection::on_shutdown(redisAsyncContext *ac) noexcept
{
    static_cast<RedisConnection *>(ac->data)->close();
}

void RedisConnection::on_disconnect(const redisAsyncContext *ac, int) noexcept
{
    auto *c = static_cast<RedisConnection *>(ac->data);

    if (c != nullptr) {
        c->lost(const_cast<redisAsyncContext *>(ac));
    }
}

void RedisConnection::on_reply(redisAsyncContext *ac, void *reply,
                               void *data) noexcept
{
    auto *command = static_cast<RedisCommand *>(data);
    auto *before = static_cast<RedisConnection *>(ac->data);

    if (before != nullptr && reply != nullptr) {
        before->heard_at_ = ngx_current_msec;
    }

    command->on_reply(command, static_cast<redisReply *>(reply));

    /*
     * hiredis asserts that every reply was asked for, and parses all that it
     * has read: input after the last reply must not get there.
     */
    auto *c = static_cast<RedisConnection *>(ac->data);

    if (c != nullptr && reply != nullptr && ac->replies.head == nullptr
        && ac->c.reader->pos < ac->c.reader->len)
    {
        c->fail(Trouble::kUnreachable, "a reply came that nothing asked for");
    }
}

void RedisConnection::on_timer(ngx_event_t *ev) noexcept
{
    auto *c = static_cast<RedisConnection *>(ev->data);

    /* the answer may be there, if the worker had no time to read it */
    c->read_waiting_input();

    /* and it has changed what there is to wait for, perhaps */
    if (c->ac_ == nullptr || c->timer_.timer_set) {
        return;
    }

    if (c->state_ == State::kUp) {
        c->break_silence();
    } else {
        c->fail(Trouble::kUnreachable,
                reason_of_silence(c->ac_, c->has_been_up_));
    }
}

}  // namespace sl
