/*
 * One connection of a worker to one Redis: opens it, sets it up, and notices
 * when it breaks.
 *
 *   closed ──open()──▶ starting ──set up──▶ up
 *                          │                 │
 *                        fails             fails
 *                          ▼                 ▼
 *                         down ◀─────────────┘
 *                          └─reopen()──▶ set up ──▶ up, or down again
 *
 * Commands are accepted while starting (they wait behind the set-up) and while
 * up. Once it is down nobody waits for it; whoever uses it says when to try
 * again. Set-up ends with a real call of the script, so "up" means that
 * counting works.
 */

#pragma once

#include <initializer_list>

#include "../sl_nginx.h"

extern "C" {
#include <hiredis/async.h>
}

namespace sl {

/* Where a Redis is and how to log in. Strings are NUL-terminated. */
struct RedisSettings {
    /* For log messages: the address without password. */
    ngx_str_t name;

    /* Numeric addresses to try in turn; a single path if `is_socket`. */
    const ngx_str_t *hosts;
    ngx_uint_t host_count;
    in_port_t port;
    bool is_socket;

    /* Empty: none. */
    ngx_str_t user;
    ngx_str_t password;

    ngx_uint_t db;

    /* From asking to answer, for one check. */
    ngx_msec_t timeout;

    /* From connect() to the end of set-up. */
    ngx_msec_t connect_timeout;
};

/* A command that has been sent and waits for its reply. */
struct RedisCommand {
    /*
     * Called once: with the reply, or with nullptr if the connection breaks
     * first. Inside hiredis: the handler must not run requests.
     */
    void (*on_reply)(RedisCommand *self, redisReply *reply) noexcept;
};

/* What an error reply says. */
inline std::string_view text_of(const redisReply *reply) noexcept
{
    return {reply->str, static_cast<size_t>(reply->len)};
}

/* Why a connection is of no use. */
enum class Trouble {
    kNone,
    kLocal,       /* this worker has no means to connect */
    kUnreachable, /* nobody there, or silence, or nonsense */
    kUnavailable, /* it says that it cannot serve now */
    kForbidden,   /* it says that we may not */
};

/* Whoever uses a connection. */
class RedisUser {
  public:
    /* It is up, for the first time or again. */
    virtual void connected() noexcept = 0;

    /*
     * It is down; `began` is when the attempt to connect did, or 0 if it has
     * been up.
     */
    virtual void disconnected(Trouble trouble, std::string_view reason,
                              ngx_msec_t began) noexcept = 0;

  protected:
    ~RedisUser() = default;
};

class RedisConnection {
  public:
    RedisConnection(const RedisSettings &settings, RedisUser &user) noexcept;

    void open() noexcept;

    /* If it is down and no attempt is under way. */
    void reopen() noexcept;

    /* Every pending command gets its nullptr before this returns. */
    void close() noexcept;

    /* send() has a chance. */
    bool accepts() const noexcept
    {
        return state_ == State::kStarting || state_ == State::kUp;
    }

    bool is_up() const noexcept { return state_ == State::kUp; }

    /*
     * Queues a command in Redis's protocol; it leaves at the end of this turn
     * of the event loop. On false `command` will not be called.
     */
    bool send(RedisCommand *command, const char *text, size_t size) noexcept;

    /* Delivers the replies that are there already; see the adapter. */
    void read_waiting_input() noexcept;

    /* Loads the script (again); commands sent from now on will find it. */
    bool send_script() noexcept;

    /*
     * Whoever uses it notices that it is of no use: drops it, and tells them
     * as if it had broken by itself.
     */
    void fail(Trouble trouble, std::string_view reason) noexcept;

  private:
    enum class State { kClosed, kStarting, kUp, kDown };

    /* A command of the set-up: its reply must not be an error. */
    struct SetupCommand : RedisCommand {
        RedisConnection *connection;
    };

    void connect() noexcept;
    redisAsyncContext *new_context() noexcept;
    bool send_setup() noexcept;
    bool send_setup_command(
        SetupCommand *command,
        std::initializer_list<std::string_view> args) noexcept;
    void set_up() noexcept;
    void setup_failed(std::string_view error) noexcept;
    bool is_settled() const noexcept;
    void lost(redisAsyncContext *ac) noexcept;
    void go_down(Trouble trouble, std::string_view reason) noexcept;
    void stop_timer() noexcept;
    void drop_context() noexcept;

    static void on_setup_reply(RedisCommand *self, redisReply *reply) noexcept;
    static void on_auth_reply(RedisCommand *self, redisReply *reply) noexcept;
    static void on_script_reply(RedisCommand *self, redisReply *reply) noexcept;
    static void on_probe_reply(RedisCommand *self, redisReply *reply) noexcept;
    static void on_connect(const redisAsyncContext *ac, int status) noexcept;
    static void on_shutdown(redisAsyncContext *ac) noexcept;
    static void on_disconnect(const redisAsyncContext *ac, int status) noexcept;
    static void on_reply(redisAsyncContext *ac, void *reply,
                         void *command) noexcept;
    static void on_timer(ngx_event_t *ev) noexcept;

    const RedisSettings &settings_;
    RedisUser &user_;
    State state_;
    redisAsyncContext *ac_;

    /* The time for set-up. */
    ngx_event_t timer_;

    ngx_uint_t host_; /* index of the address in use */
    ngx_msec_t began_;
    ngx_msec_t up_since_;

    /* SCRIPT LOAD is on its way: no need for a second one. */
    bool script_loading_;

    SetupCommand setup_command_;
    SetupCommand auth_command_;
    SetupCommand script_command_;
    SetupCommand probe_command_;
};

}  // namespace sl
