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
 *
 * What is idle for long may be forgotten on the way (by NAT, a firewall, a
 * balancer), and nobody is told. So a silent connection says something now and
 * then: that keeps it alive, or shows that it is dead before a request does.
 */

#pragma once

#include <initializer_list>

#include "redis/pure/sl_key.h"
#include "redis/sl_redis_command.h"
#include "redis/sl_redis_context.h"
#include "redis/sl_redis_locator.h"

namespace sl {

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

    /* It has broken, and another one is opened at once. */
    virtual void reconnecting() noexcept = 0;

    /* A key to try the script with; false: without one. And one of another
     * slot, if the server can be asked about both in one call. */
    virtual bool probe_key(RedisKey *key) const noexcept = 0;
    virtual bool other_probe_key(RedisKey *key) const noexcept = 0;

    /* It turns out that it cannot. */
    virtual void found_slots() noexcept = 0;

  protected:
    ~RedisUser() = default;
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

    /* send() has a chance. */
    bool accepts() const noexcept
    {
        return state_ == State::kStarting || state_ == State::kUp;
    }

    bool is_up() const noexcept { return state_ == State::kUp; }

    /* It is not known yet where to connect to: nothing can be sent. */
    bool is_locating() const noexcept { return is_locating_; }

    /*
     * Whether that is where it is connected to, or connecting. The same name is
     * the same server, whichever of its addresses that is.
     */
    bool leads_to(const RedisEndpoint &endpoint) const noexcept;

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

    /* Loads the script (again); commands sent from now on will find it. */
    bool send_script() noexcept;

    /* For a command that follows: the server is to accept it although it does
     * not have the key yet. */
    bool send_asking() noexcept;

    /* A command of few words; as send(). */
    bool send(RedisCommand *command,
              std::initializer_list<std::string_view> words) noexcept;

    /*
     * Whoever uses it notices that it is of no use: drops it, and tells them
     * as if it had broken by itself.
     */
    void fail(Trouble trouble, std::string_view reason) noexcept;

    /* The same, but it may be the only one that is dead: so if it has worked
     * for a while another one is opened, and will tell. */
    void replace(std::string_view reason) noexcept;

  private:
    enum class State { kClosed, kStarting, kUp, kDown };

    /* What the set-up asks about: two keys at once if it can; and one of them
     * if that was refused. */
    enum class Probe { kOneKey, kTwoKeys, kOneOfTwo };

    /* A command of the set-up: its reply must not be an error. */
    struct SetupCommand : RedisCommand {
        RedisConnection *connection;
    };

    void connect() noexcept;
    void located(const RedisEndpoint &where) noexcept override;
    void not_located(Trouble trouble,
                     std::string_view reason) noexcept override;
    bool send_setup() noexcept;
    bool send_login() noexcept;
    bool send_select() noexcept;
    bool send_probe() noexcept;
    bool send_probe_of(const RedisKey *keys, size_t count,
                       RedisCommand *command) noexcept;
    void probe_refused(std::string_view error) noexcept;
    void set_up() noexcept;
    void break_silence() noexcept;
    void setup_failed(std::string_view error) noexcept;
    bool is_settled() const noexcept;
    void lost(redisAsyncContext *ac) noexcept;
    void open_another() noexcept;
    void go_down(Trouble trouble, std::string_view reason) noexcept;
    void stop_timer() noexcept;
    void drop_context() noexcept;

    static void on_setup_reply(RedisCommand *self, redisReply *reply) noexcept;
    static void on_auth_reply(RedisCommand *self, redisReply *reply) noexcept;
    static void on_script_reply(RedisCommand *self, redisReply *reply) noexcept;
    static void on_role_reply(RedisCommand *self, redisReply *reply) noexcept;
    static void on_probe_reply(RedisCommand *self, redisReply *reply) noexcept;
    static void on_sign_of_life(RedisCommand *self, redisReply *reply) noexcept;
    static void on_connect(const redisAsyncContext *ac, int status) noexcept;
    static void on_shutdown(redisAsyncContext *ac) noexcept;
    static void on_disconnect(const redisAsyncContext *ac, int status) noexcept;
    static void on_reply(redisAsyncContext *ac, void *reply,
                         void *command) noexcept;
    static void on_timer(ngx_event_t *ev) noexcept;

    const RedisSettings &settings_;
    RedisLocator &locator_;
    RedisUser &user_;
    State state_;
    redisAsyncContext *ac_;

    /* The time for set-up; once it is up, until something has to be said. */
    ngx_event_t timer_;

    /* The locator has been asked and has not said where yet. */
    bool is_locating_;

    char host_[NGX_SOCKADDR_STRLEN];
    char name_[kMaxHostName + 1];
    in_port_t port_;

    ngx_msec_t began_;
    ngx_msec_t up_since_;

    /* When the last reply came. */
    ngx_msec_t heard_at_;

    /* It has been up, this one or one before it. */
    bool has_been_up_;

    Probe probe_;

    /* Something was said to break the silence, and not answered yet. */
    bool awaits_sign_;

    /* SCRIPT LOAD is on its way: no need for a second one. */
    bool script_loading_;

    SetupCommand setup_command_;
    SetupCommand auth_command_;
    SetupCommand script_command_;
    SetupCommand role_command_;
    SetupCommand probe_command_;
    SetupCommand sign_command_;
};

}  // namespace sl
