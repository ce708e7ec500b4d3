#include "sl_redis_connection.h"

#include "../core/sl_decision.h"
#include "../core/sl_key.h"
#include "../core/sl_redis_error.h"
#include "sl_redis_adapter.h"
#include "sl_redis_script.h"

namespace sl {

namespace {

/*
 * A connection this old that Redis closes is replaced at once: it has merely
 * been cleaned up. With a younger one that could turn into a storm.
 */
constexpr ngx_msec_t kSettledMs = 1000;

/* Replies have no more elements than an answer about kMaxLimits. */
constexpr size_t kMaxElements = numbers_in_answer(kMaxLimits);

/*
 * hiredis allocates whatever arrays a server announces, and 0.14 walks them
 * when freeing. Nothing that is asked for is answered with a large one, or
 * with one inside another. A template, as 1.0 changed the type of the count.
 */
redisReplyObjectFunctions *default_functions;

template <typename Count>
void *create_small_array(const redisReadTask *task, Count elements) noexcept
{
    if (static_cast<size_t>(elements) > kMaxElements || task->parent != nullptr)
    {
        return nullptr;
    }

    return default_functions->createArray(task, elements);
}

void limit_reply_size(redisAsyncContext *ac)
{
    static redisReplyObjectFunctions limited = [ac] {
        default_functions = ac->c.reader->fn;

        redisReplyObjectFunctions fn = *default_functions;
        fn.createArray = create_small_array;
        return fn;
    }();

    ac->c.reader->fn = &limited;
}

/* Why hiredis gives a connection up. */
std::string_view reason_of(const redisAsyncContext *ac)
{
    /* what create_small_array() makes of it */
    if (ac->c.err == REDIS_ERR_OOM) {
        return "out of memory, or a reply unlike any that was asked for";
    }

    return ac->c.err ? ac->c.errstr : "connection closed";
}

}  // namespace

RedisConnection::RedisConnection(const RedisSettings &settings,
                                 RedisUser &user) noexcept
    : settings_(settings), user_(user), state_(State::kClosed), ac_(nullptr),
      timer_(), host_(0), began_(0), up_since_(0), script_loading_(false),
      setup_command_(), auth_command_(), script_command_(), probe_command_()
{
    setup_command_.on_reply = on_setup_reply;
    setup_command_.connection = this;
    auth_command_.on_reply = on_auth_reply;
    auth_command_.connection = this;
    script_command_.on_reply = on_script_reply;
    script_command_.connection = this;
    probe_command_.on_reply = on_probe_reply;
    probe_command_.connection = this;

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
    if (state_ == State::kDown && ac_ == nullptr) {
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

bool RedisConnection::send_script() noexcept
{
    if (!script_loading_) {
        script_loading_ = send_setup_command(&script_command_,
                                             {"SCRIPT", "LOAD", script_text()});
    }

    return script_loading_;
}

void RedisConnection::fail(Trouble trouble, std::string_view reason) noexcept
{
    go_down(trouble, reason);
    drop_context();
}

void RedisConnection::connect() noexcept
{
    began_ = ngx_current_msec;

    redisAsyncContext *ac = new_context();

    if (ac == nullptr) {
        return;
    }

    ac_ = ac;
    limit_reply_size(ac);

    ngx_add_timer(&timer_, settings_.connect_timeout);

    redisAsyncSetDisconnectCallback(ac, on_disconnect);
    /* last: it asks for the write event that tells when the socket is open */
    redisAsyncSetConnectCallback(ac, on_connect);

    if (!send_setup()) {
        fail(Trouble::kLocal, "out of memory");
    }
}

/* nullptr: the failure has been dealt with. */
redisAsyncContext *RedisConnection::new_context() noexcept
{
    auto *host = reinterpret_cast<char *>(settings_.hosts[host_].data);

    errno = 0;

    redisAsyncContext *ac = settings_.is_socket
                                ? redisAsyncConnectUnix(host)
                                : redisAsyncConnect(host, settings_.port);

    if (ac == nullptr) {
        go_down(Trouble::kLocal, "out of memory");
        return nullptr;
    }

    if (ac->err) {
        bool is_local = errno == EMFILE || errno == ENFILE;

        go_down(is_local ? Trouble::kLocal : Trouble::kUnreachable, ac->errstr);
        redisAsyncFree(ac);
        return nullptr;
    }

    ac->data = this;

    if (!attach_to_event_loop(ac, ngx_cycle->log, on_shutdown)) {
        go_down(Trouble::kLocal, "no free worker_connections");
        redisAsyncFree(ac);
        return nullptr;
    }

    return ac;
}

/*
 * Everything at once, before the connection is even open: one round trip. The
 * probe is an ordinary check with a window of its own; its key has an empty
 * zone, which no configured limit can have.
 */
bool RedisConnection::send_setup() noexcept
{
    if (settings_.password.len) {
        bool sent = settings_.user.len
                        ? send_setup_command(&auth_command_,
                                             {"AUTH", view(settings_.user),
                                              view(settings_.password)})
                        : send_setup_command(
                            &auth_command_, {"AUTH", view(settings_.password)});

        if (!sent) {
            return false;
        }
    }

    if (settings_.db) {
        u_char db[NGX_INT_T_LEN];
        size_t size = ngx_sprintf(db, "%ui", settings_.db) - db;

        if (!send_setup_command(
                &setup_command_,
                {"SELECT", {reinterpret_cast<char *>(db), size}}))
        {
            return false;
        }
    }

    return send_script()
           && send_setup_command(&probe_command_,
                                 {"EVALSHA", script_sha(), "1",
                                  redis_key("", "probe").view(), "", "probe",
                                  "100000", "1000000", "1", "0", ""});
}

bool RedisConnection::send_setup_command(
    SetupCommand *command,
    std::initializer_list<std::string_view> args) noexcept
{
    constexpr size_t kMaxArgs = 11;

    const char *argv[kMaxArgs];
    size_t argvlen[kMaxArgs];
    size_t argc = 0;

    for (std::string_view arg : args) {
        argv[argc] = arg.data();
        argvlen[argc++] = arg.size();
    }

    return ac_ != nullptr
           && redisAsyncCommandArgv(ac_, on_reply,
                                    static_cast<RedisCommand *>(command),
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
    /* whatever else Redis says no to here, waiting does not mend it */
    bool unavailable = classify_redis_error(error) == RedisError::kUnavailable;

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

void RedisConnection::on_probe_reply(RedisCommand *self,
                                     redisReply *reply) noexcept
{
    RedisConnection *c = static_cast<SetupCommand *>(self)->connection;

    if (reply != nullptr && reply->type == REDIS_REPLY_ARRAY) {
        c->set_up();

    } else if (reply != nullptr && reply->type != REDIS_REPLY_ERROR) {
        c->fail(Trouble::kUnreachable, "its answers are not those of a Redis");

    } else {
        on_setup_reply(self, reply);
    }
}

void RedisConnection::set_up() noexcept
{
    stop_timer();

    state_ = State::kUp;
    up_since_ = ngx_current_msec;

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
        connect();
        return;
    }

    go_down(Trouble::kUnreachable, reason_of(ac));
}

void RedisConnection::go_down(Trouble trouble, std::string_view reason) noexcept
{
    if (state_ == State::kClosed) {
        return;
    }

    ngx_msec_t began = state_ == State::kUp ? 0 : began_;

    state_ = State::kDown;
    host_ = (host_ + 1) % settings_.host_count;
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

    if (c->ac_ != nullptr && c->state_ != State::kUp) {
        c->fail(Trouble::kUnreachable, "no answer within connect_timeout");
    }
}

}  // namespace sl
