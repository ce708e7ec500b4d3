/*
 * One connection of a worker to one server, and the calls on their way over
 * it. Sees to it that nobody waits longer than `timeout`.
 *
 * Ordinary questions of one turn of the event loop go out together, in as few
 * commands as possible: that is what costs Redis least. All else goes out at
 * once, after them. So what is taken back is taken back after it was counted,
 * and before anything asked later. What cannot be taken
 * back because the server is away waits for its return.
 *
 * When it is away is known to all workers, by a breaker. One of them looks for
 * its return; the others wait for the breaker to close and connect then.
 */

#pragma once

#include "redis/pure/sl_breaker.h"
#include "redis/sl_redis_call.h"
#include "redis/sl_redis_connection.h"

namespace sl {

/* Knows which server has which keys. */
class RedisRouter {
  public:
    /*
     * A server answered a call with this error. True if it is now the router's
     * to see to it, because the server was not the right one.
     */
    virtual bool redirect(RedisCall *call, std::string_view error) noexcept = 0;

    /* Whether keys of one call have to be in one slot; and that they do, as a
     * server says which was not known to have any. */
    virtual bool needs_one_slot() const noexcept = 0;
    virtual void found_slots() noexcept = 0;

    /* A key that this channel's server has; false: none is known. And one of
     * another slot, if a call can be about both. */
    virtual bool probe_key(const RedisChannel &channel,
                           RedisKey *key) const noexcept = 0;
    virtual bool other_probe_key(RedisKey *key) const noexcept = 0;

    /* The channel's server answers again, or has ceased to. */
    virtual void channel_up(RedisChannel &channel) noexcept = 0;
    virtual void channel_down(RedisChannel &channel) noexcept = 0;

  protected:
    ~RedisRouter() = default;
};

class RedisChannel final : private RedisUser, private AnswerReceiver {
  public:
    /* `name` is for the log. All of them outlive the channel. */
    RedisChannel(const RedisSettings &settings, const ngx_str_t &name,
                 RedisLocator &locator, BreakerState &breaker,
                 StoreMetrics &metrics, RedisRouter &router) noexcept;
    ~RedisChannel();

    RedisChannel(const RedisChannel &) = delete;
    RedisChannel &operator=(const RedisChannel &) = delete;

    void open() noexcept;

    /* Answers what is pending; nothing is sent any more. */
    void close() noexcept;

    /* Whether ask() has a chance. If not, looks for the server's return. */
    bool is_usable() noexcept;

    /* It had none: a check was not asked. */
    void turned_away() noexcept;

    /* As far as is known, it has none. */
    bool is_away() const noexcept
    {
        return breaker_.is_open() || !connection_.accepts();
    }

    /*
     * Sends a call, which is the channel's from now on. nullptr, and the call
     * is gone, if that cannot be; `*error` says why.
     */
    PendingQuestion *ask(RedisCall *call, AnswerReceiver &receiver,
                         StoreError *error) noexcept;

    /* Sends it, now or when the server is back. */
    void take_back(const ScriptArgs &all) noexcept;

    /* Takes over a call that another channel was the wrong one for. */
    bool adopt(RedisCall *call, bool with_asking) noexcept;

    /* For other commands than calls. */
    RedisConnection &connection() noexcept { return connection_; }

    /* No call is on its way or waits. */
    bool is_idle() const noexcept
    {
        return call_count_ == 0 && backlog_count_ == 0;
    }

  private:
    void take_back_counted(const Provisional &provisional,
                           const Answer &answer) noexcept;
    void take_back_uncertain(const Provisional &provisional) noexcept;
    void send_or_postpone(RedisCall *call) noexcept;
    void postpone(RedisCall *call) noexcept;
    void wait_in_backlog(RedisCall *call) noexcept;
    RedisCall *next_of_backlog() noexcept;
    void send_backlog() noexcept;
    void drop_questions() noexcept;
    bool send(RedisCall *call) noexcept;
    bool send_alone(RedisCall *call) noexcept;
    bool is_on_its_way(RedisCall *call, bool is_sent) noexcept;
    void send_collected() noexcept;
    void send_batch(RedisBatch *batch) noexcept;
    RedisBatch *next_batch() noexcept;
    RedisCall *next_alike(RedisCall *call) noexcept;
    void settle(RedisBatch *batch, const redisReply *reply) noexcept;
    bool settle(RedisCall *call, const redisReply *reply) noexcept;
    bool ask_again(RedisCall *call) noexcept;
    void deliver(RedisCall *call, const Answer &answer) noexcept;
    bool try_elsewhere(RedisCall *call, std::string_view error) noexcept;
    bool retry_with_script(RedisCall *call) noexcept;
    void report_error(std::string_view error) noexcept;
    void not_understood() noexcept;
    const RedisCall *oldest_if_late() const noexcept;
    bool is_stalled() const noexcept;
    void drop_if_stalled() noexcept;
    void complain(std::string_view what) noexcept;
    void log_down(Trouble trouble, std::string_view reason) noexcept;
    std::string_view server() const noexcept;

    void recover() noexcept;
    void recover_soon() noexcept;
    int64_t probe_span() const noexcept;
    void probe() noexcept;
    bool is_probe(const RedisCall &call) const noexcept;
    void probe_failed(ngx_msec_t least_delay) noexcept;

    void connected() noexcept override;
    void disconnected(Trouble trouble, std::string_view reason,
                      ngx_msec_t began) noexcept override;
    void reconnecting() noexcept override;
    bool probe_key(RedisKey *key) const noexcept override;
    bool other_probe_key(RedisKey *key) const noexcept override;
    void found_slots() noexcept override { router_.found_slots(); }
    void receive(const Answer &of_probe) noexcept override;

    static void on_reply(RedisCommand *command, redisReply *reply) noexcept;
    static void on_batch_reply(RedisCommand *command,
                               redisReply *reply) noexcept;
    static void on_turn_end(ngx_event_t *ev) noexcept;
    static void on_timeout(ngx_event_t *ev) noexcept;
    static void on_recovery(ngx_event_t *ev) noexcept;

    const RedisSettings &settings_;
    const ngx_str_t &name_;
    RedisRouter &router_;
    Breaker breaker_;
    StoreMetrics &metrics_;
    RedisConnection connection_;

    /* Runs while the connection or the breaker needs to be looked after. */
    ngx_event_t recovery_;

    /* Why this worker has no connection, if others may have one. */
    char reason_[128];
    size_t reason_size_;

    /* While this worker is the one that probes. */
    Breaker::Ticket ticket_;

    /* Calls that go out together at the end of this turn of the event loop. */
    ngx_queue_t collected_;
    ngx_uint_t collected_count_;
    ngx_event_t turn_end_;

    /* Calls without a reply yet, the oldest first. */
    ngx_queue_t calls_;

    /* Both. */
    ngx_uint_t call_count_;

    /* Calls that take something back and wait for a connection, and those that
     * wait until it is known where to connect to. */
    ngx_queue_t backlog_;
    ngx_uint_t backlog_count_;

    /* Failures since the last complaint in the log, and when that was. */
    ngx_uint_t silent_failures_;
    ngx_msec_t complained_at_;
};

}  // namespace sl
