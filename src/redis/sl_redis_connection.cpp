#include "redis/sl_redis_connection.h"

#include "redis/sl_redis_adapter.h"
#include "redis/sl_redis_log.h"
#include "redis/sl_redis_login.h"
#include "redis/sl_script_call.h"

namespace sl {

namespace {

/*
 * A connection this old that Redis closes is replaced at once: it has merely
 * been cleaned up. With a younger one that could turn into a storm.
 */
constexpr ngx_msec_t kSettledMs = 1000;

}  // namespace

RedisConnection::RedisConnection(const RedisSettings &settings,
                                 RedisLocator &locator,
                                 RedisUser &user) noexcept
    : settings_(settings), locator_(locator), user_(user),
      state_(State::kClosed), ac_(nullptr),
      timer_(Wakeup::calling<&RedisConnection::timed_out>(this,
                                                          Wakeup::kCancelable)),
      shutdown_(Wakeup::calling<&RedisConnection::shut_down>(
          this, Wakeup::kCancelable)),
      turns_left_(0), is_locating_(false), host_(), name_(), port_(0),
      password_changes_(0), next_login_(0), began_(0), up_since_(0),
      has_been_up_(false), setup_(settings, *this, user),
      sign_of_life_(settings, *this)
{}

void RedisConnection::open() noexcept
{
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
    turns_left_ = 0;

    shutdown_.cancel();
    stop_timers();
    drop_context();
}

bool RedisConnection::send(RedisCommand *command, const char *text,
                           size_t size) noexcept
{
    return ac_ != nullptr && send_command(ac_, on_reply, command, {text, size});
}

bool RedisConnection::send(
    RedisCommand *command,
    std::initializer_list<std::string_view> words) noexcept
{
    return ac_ != nullptr && send_words(ac_, on_reply, command, words);
}

bool RedisConnection::send_probe(RedisCommand *command, const RedisKey *keys,
                                 size_t count) noexcept
{
    char room[ScriptText::kMaxSize];
    ScriptText call(ScriptArgs::probe(keys, count), room);

    return send(command, call.all().data(), call.all().size());
}

bool RedisConnection::send_login(RedisCommand *command) noexcept
{
    return ac_ != nullptr
           && sl::send_login(ac_, settings_.login, on_reply, command);
}

/* Before the server has let us in, another AUTH would change nothing: it
 * refuses or accepts the first one. */
void RedisConnection::renew_login() noexcept
{
    bool is_due = has_old_login()
                  || (next_login_ != 0 && ngx_current_msec >= next_login_);

    if (is_due && ac_ != nullptr && setup_.is_let_in()
        && setup_.send_new_login()) {
        note_login();
    }
}

void RedisConnection::note_login() noexcept
{
    password_changes_ = password_changes(settings_);
    next_login_ = 0;
}

void RedisConnection::new_login_refused() noexcept
{
    next_login_ = ngx_current_msec + kNeedsPersonDelayMs;
}

bool RedisConnection::has_old_login() const noexcept
{
    return password_changes_ != password_changes(settings_);
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

ServerName RedisConnection::server_name() const noexcept
{
    ServerName name;
    bool is_ipv6 = port_ != 0 && strchr(host_, ':') != nullptr;
    u_char *end = ngx_snprintf(bytes(name.data), sizeof(name.data), "%s%s%s",
                               is_ipv6 ? "[" : "", host_, is_ipv6 ? "]" : "");

    if (port_ != 0) {
        end = ngx_snprintf(
            end,
            static_cast<size_t>(bytes(name.data) + sizeof(name.data) - end),
            ":%d", static_cast<int>(port_));
    }

    name.size = static_cast<size_t>(end - bytes(name.data));

    return name;
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

/* A server may have closed the connection because it has a new password, or
 * come back with one, before the worker has looked at the file by itself. */
void RedisConnection::connect() noexcept
{
    stop_timers();
    refresh_passwords(settings_);
    note_login();

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
    ngx_cpystrn(bytes(host_), where.host.data, sizeof(host_));
    name_[view(where.name).copy(name_, sizeof(name_) - 1)] = '\0';

    OpenedContext opened = open_context(where, settings_.tls, on_shutdown);

    if (opened.ac == nullptr) {
        go_down(opened.trouble, opened.reason);
        return;
    }

    ac_ = opened.ac;
    ac_->data = this;

    timer_.after(settings_.connect_timeout);

    redisAsyncSetDisconnectCallback(ac_, on_disconnect);
    /* last: it asks for the write event that tells when the socket is open */
    redisAsyncSetConnectCallback(ac_, on_connect);

    if (!setup_.start()) {
        fail(Trouble::kLocal, "out of memory");
    }
}

void RedisConnection::set_up() noexcept
{
    timer_.cancel();

    if (port_ != 0) {
        watch_peer(ac_);
    }

    state_ = State::kUp;
    up_since_ = ngx_current_msec;
    has_been_up_ = true;
    sign_of_life_.watch();

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

void RedisConnection::go_down(Trouble trouble, std::string_view reason) noexcept
{
    if (state_ == State::kClosed) {
        return;
    }

    ngx_msec_t began = state_ == State::kUp ? 0 : began_;

    state_ = State::kDown;
    stop_timers();

    user_.disconnected(trouble, reason, began);
}

void RedisConnection::stop_timers() noexcept
{
    timer_.cancel();
    sign_of_life_.stop();
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

/*
 * nginx ends all connections one after the other, and this one is among the
 * first. What the requests of the others have cost is known when they end, or
 * by what they post then. It is sent; nobody waits for a reply.
 */
void RedisConnection::on_shutdown(redisAsyncContext *ac) noexcept
{
    constexpr unsigned kTurns = 2;
    auto *c = static_cast<RedisConnection *>(ac->data);

    if (c->turns_left_ == 0) {
        c->turns_left_ = kTurns;
        c->shutdown_.at_end_of_turn();
    }
}

void RedisConnection::shut_down() noexcept
{
    if (is_up()) {
        write_waiting_output();
    }

    if (--turns_left_ > 0) {
        shutdown_.at_end_of_turn();
    } else {
        close();
    }
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
        before->sign_of_life_.heard();
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

void RedisConnection::timed_out() noexcept
{
    /* the answer may be there, if the worker had no time to read it */
    read_waiting_input();

    /* and it may have ended the set-up, or begun another one */
    if (ac_ != nullptr && state_ != State::kUp && !timer_.is_set()) {
        fail(Trouble::kUnreachable, reason_of_silence(ac_, has_been_up_));
    }
}

}  // namespace sl
