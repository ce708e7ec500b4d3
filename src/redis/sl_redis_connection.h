/*
 * One connection of a worker to one Redis: opens it, has it set up, and notices
 * when it breaks.
 *
 *   closed ──open()──▶ starting ──set up──▶ up
 *                          │                 │
 *                        fails             fails
 *                          ▼                 ▼
 *                         down ◀─────────────┘
 *                          └─reopen()──▶ set up ──▶ up, or down again
 *
 * Calls are accepted while starting and while up. While starting they wait
 * until the server has let us in, and then follow the script. Once it is down
 * nobody waits for it; whoever uses it says when to try again. Set-up ends with
 * a real call of the script, so "up" means that counting works.
 */

#pragma once

#include <initializer_list>

#include "redis/sl_connection_setup.h"
#include "redis/sl_redis_locator.h"
#include "redis/sl_sign_of_life.h"

namespace sl {

/* Where a server is, as people read it. */
struct ServerName {
    /* An address in brackets, a colon and a port; or the path of a socket. */
    char data[NGX_SOCKADDR_STRLEN + sizeof("[]:65535")];
    size_t size;

    std::string_view view() const noexcept { return {data, size}; }
};

class RedisConnection final : private LocatorUser {
  public:
    RedisConnection(const RedisSettings &settings, RedisLocator &locator,
                    RedisUser &user) noexcept;

    void open() noexcept;

    /* If it is down and no attempt is under way. */
    void reopen() noexcept;

    /* Every pending command gets its nullptr before this returns. */
    void close() noexcept;

    /* A call has a chance, now or in a moment. */
    bool accepts() const noexcept
    {
        return state_ == State::kStarting || state_ == State::kUp;
    }

    bool is_up() const noexcept { return state_ == State::kUp; }

    /* Calls have to wait: it is not known yet where to connect to, or the
     * server has not let us in. */
    bool holds_calls() const noexcept
    {
        return is_locating_ || !setup_.is_let_in();
    }

    /*
     * Whether that is the server it is connected to, or connecting. The same
     * name is the same server, whichever of its addresses that is.
     */
    bool leads_to(const RedisEndpoint &endpoint) const noexcept;

    /* That server. */
    ServerName server_name() const noexcept;

    /* Connects anew, because the server is not the right one any more. */
    void renew() noexcept;

    /*
     * Queues a command in Redis's protocol; it leaves at the end of this turn
     * of the event loop. On false `command` will not be called.
     */
    bool send(RedisCommand *command, const char *text, size_t size) noexcept;

    /*
     * Delivers the replies that are there already; see the adapter. Not while
     * one is being delivered.
     */
    void read_waiting_input() noexcept;

    /* There is a connection, and no reply is being delivered. */
    bool is_listening() const noexcept
    {
        return ac_ != nullptr && !(ac_->c.flags & REDIS_IN_CALLBACK);
    }

    /* Sends what is queued, before the end of this turn; see the adapter. */
    void write_waiting_output() noexcept;

    /* A command of few words; as above. */
    bool send(RedisCommand *command,
              std::initializer_list<std::string_view> words) noexcept;

    /* Logs in once more if a password has changed since the last time; or if
     * the server refused it then, which it may not do for ever. To be called
     * again and again. */
    void renew_login() noexcept;

    /* The server refuses a new password, and keeps the old login. */
    void new_login_refused() noexcept;

    /* A password has changed since it tried to log in. */
    bool has_old_login() const noexcept;

    /* AUTH, if there is a password; as above. */
    bool send_login(RedisCommand *command) noexcept;

    /* A call of the script that tries the server out; without keys it changes
     * nothing there. As send(). */
    bool send_probe(RedisCommand *command, const RedisKey *keys,
                    size_t count) noexcept;

    /* Loads the script (again): commands sent from now on will find it. */
    bool send_script() noexcept { return setup_.send_script(); }

    /* Before a command that the server is to accept although it does not have
     * the key yet. */
    bool send_asking() noexcept { return setup_.send_asking(); }

    /* The set-up has succeeded. */
    void set_up() noexcept;

    /*
     * Whoever uses it notices that it is of no use: drops it, and tells them
     * as if it had broken by itself.
     */
    void fail(Trouble trouble, std::string_view reason) noexcept;

    /* The same, but perhaps only this connection is dead, and not the server:
     * so if it has worked for a while another one is opened, and will tell. */
    void replace(std::string_view reason) noexcept;

  private:
    enum class State { kClosed, kStarting, kUp, kDown };

    void connect() noexcept;
    void note_login() noexcept;
    void located(const RedisEndpoint &where) noexcept override;
    void not_located(Trouble trouble,
                     std::string_view reason) noexcept override;
    bool is_settled() const noexcept;
    void lost(redisAsyncContext *ac) noexcept;
    void open_another() noexcept;
    void go_down(Trouble trouble, std::string_view reason) noexcept;
    void timed_out() noexcept;
    void stop_timers() noexcept;
    void drop_context() noexcept;

    static void on_connect(const redisAsyncContext *ac, int status) noexcept;
    void shut_down() noexcept;
    static void on_shutdown(redisAsyncContext *ac) noexcept;
    static void on_disconnect(const redisAsyncContext *ac, int status) noexcept;
    static void on_reply(redisAsyncContext *ac, void *reply,
                         void *command) noexcept;

    const RedisSettings &settings_;
    RedisLocator &locator_;
    RedisUser &user_;
    State state_;
    redisAsyncContext *ac_;

    /* The time for set-up. */
    Wakeup timer_;

    /* When worker_shutdown_timeout is over, and how often that is put off. */
    Wakeup shutdown_;
    unsigned turns_left_;

    /* The locator has been asked and has not said where yet. */
    bool is_locating_;

    /* Where it is connected to, or connecting. */
    char host_[NGX_SOCKADDR_STRLEN];
    char name_[kMaxHostName + 1];
    in_port_t port_;

    /* How often passwords had changed when it logged in. */
    unsigned password_changes_;

    /* When to log in again after a refusal; 0: there was none. */
    ngx_msec_t next_login_;

    ngx_msec_t began_;
    ngx_msec_t up_since_;

    /* It has been up, this one or one before it. */
    bool has_been_up_;

    ConnectionSetup setup_;
    SignOfLife sign_of_life_;
};

}  // namespace sl
