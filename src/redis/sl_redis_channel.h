/*
 * One connection of a worker to one server, and the calls on their way over
 * it. Sees to it that nobody waits longer than `timeout`.
 *
 * Questions of one turn of the event loop go out together, in as few commands
 * as possible. All else goes out at once, after them. So what is
 * settled is settled after it was counted, and before anything asked later.
 * What cannot be settled because the server is away waits for its return.
 */

#pragma once

#include "redis/sl_redis_backlog.h"
#include "redis/sl_redis_batch.h"
#include "redis/sl_redis_connection.h"
#include "redis/sl_redis_recovery.h"

namespace sl {

enum class RedisError;
class RedisChannel;

/* Whoever has channels, and knows which server has which keys. */
class ChannelOwner {
  public:
    /*
     * The channel's server answered a call with this error, as it was not the
     * right one. The call is given back if there is nobody to send it to.
     */
    virtual CallPtr redirect(RedisChannel &from, CallPtr call,
                             std::string_view error) noexcept = 0;

    /* Whether all keys of a call have to be in one slot. */
    virtual bool needs_one_slot() const noexcept = 0;

    /* A server that was not known to have slots says that they have to. */
    virtual void found_slots() noexcept = 0;

    /* A key that this channel's server has; false: none is known. And one of
     * another slot, if a call can be about both. */
    virtual bool probe_key(const RedisChannel &channel,
                           RedisKey *key) const noexcept = 0;
    virtual bool other_probe_key(RedisKey *key) const noexcept = 0;

    /* For a call that settles something and cannot be sent now; given back if
     * it is to wait for this very server, or there is no room elsewhere. */
    virtual CallPtr postpone(CallPtr call) noexcept = 0;

    /* The channel's server answers again, or has ceased to. */
    virtual void channel_up(RedisChannel &channel) noexcept = 0;
    virtual void channel_down(RedisChannel &channel) noexcept = 0;

  protected:
    ~ChannelOwner() = default;
};

class RedisChannel final : private RedisUser,
                           private CallCarrier,
                           private RecoveryUser {
  public:
    /* `name` is for the log. All that is passed outlives the channel. */
    RedisChannel(const RedisSettings &settings, const ngx_str_t &name,
                 RedisLocator &locator, WorkerBreaker &breaker,
                 StoreMetrics &metrics, ChannelOwner &owner) noexcept;
    ~RedisChannel();

    RedisChannel(const RedisChannel &) = delete;
    RedisChannel &operator=(const RedisChannel &) = delete;

    void open() noexcept { connection_.open(); }

    /* Answers what is pending; nothing is sent any more. */
    void close() noexcept;

    /* Whether ask() has a chance. If not, looks for the server's return. */
    bool is_usable() noexcept;

    /* A check was not asked because ask() had no chance. */
    void turned_away() noexcept { recovery_.turned_away(); }

    /* As far as is known, ask() has no chance. */
    bool is_away() const noexcept
    {
        return recovery_.is_down() || !connection_.accepts();
    }

    /* Sends a question. nullptr if that cannot be: why is in `*answer`. */
    PendingQuestion *ask(CallPtr &&call, Answer *answer) noexcept;

    /* Sends an errand, in the same way. */
    RedisCall *run(CallPtr &&errand, StoreError *why_not) noexcept;

    /* Changes what these limits have counted to their true costs, now or when
     * the server is back. */
    void settle(const ScriptArgs &all) noexcept;

    /* For a call that another channel was the wrong one for. */
    [[nodiscard]] CallPtr adopt(CallPtr call, bool with_asking) noexcept;

    /* Why ask() has no chance, if that concerns only this channel; empty: it
     * does not, or nobody knows. And which server of a cluster it is for. */
    std::string_view reason() const noexcept { return recovery_.reason(); }
    std::string_view server() const noexcept { return log_.server(); }

    /* Logs in with new passwords, if there are any. */
    void renew_login() noexcept
    {
        connection_.renew_login();
        recovery_.try_new_login();
    }

    /* For other commands than calls. */
    RedisConnection &connection() noexcept { return connection_; }

    /* No call is on its way or waits. */
    bool is_idle() const noexcept
    {
        return call_count() == 0 && backlog_.size() == 0;
    }

  private:
    size_t call_count() const noexcept
    {
        return calls_.size() + collected_.size();
    }

    bool is_full() const noexcept;
    CallPtr settling_call(const ScriptArgs &args) noexcept;
    void postpone(CallPtr call) noexcept;
    void send_backlog() noexcept;

    [[nodiscard]] CallPtr send(CallPtr call) noexcept;
    [[nodiscard]] CallPtr send_alone(CallPtr call) noexcept;
    bool write(RedisCall &call) noexcept;
    void send_collected() noexcept;
    bool send_together(CallGroup &group) noexcept;

    void answered(CallGroup &group, const redisReply *reply) noexcept;
    void answered_with_error(CallGroup &group, std::string_view error) noexcept;
    void lost(CallGroup &group) noexcept;
    void errand_replied(RedisCall &errand, const redisReply *reply) noexcept;
    void errand_refused(CallPtr errand, std::string_view error) noexcept;
    void try_later(CallPtr call) noexcept;
    void deliver(RedisCall &call, const Answer &answer) noexcept;
    CallPtr ask_alone(CallPtr call) noexcept;
    CallPtr try_elsewhere(CallPtr call, RedisError kind,
                          std::string_view error) noexcept;
    CallPtr retry_with_script(CallPtr call) noexcept;
    void report_misplaced(const RedisCall &call) noexcept;
    void report_error(RedisError kind, std::string_view error) noexcept;

    bool is_oldest_late() const noexcept;
    bool is_stalled() const noexcept;
    void drop_if_stalled() noexcept;

    void let_in() noexcept override;
    void connected() noexcept override;
    void disconnected(Trouble trouble, std::string_view reason,
                      ngx_msec_t began) noexcept override;
    void reconnecting() noexcept override;
    bool probe_key(RedisKey *key) const noexcept override;
    bool other_probe_key(RedisKey *key) const noexcept override;
    void found_slots() noexcept override { owner_.found_slots(); }

    void replied(RedisCall *const *calls, size_t count,
                 const redisReply *reply) noexcept override;
    void timed_out(RedisCall &call) noexcept override;

    bool send_probe(AnswerReceiver &receiver) noexcept override;
    bool look_after_calls() noexcept override;

    const RedisSettings &settings_;
    ChannelOwner &owner_;
    RedisLog log_;
    RedisConnection connection_;
    RedisRecovery recovery_;

    /* Calls that go out together at the end of this turn of the event loop. */
    CallCollector collected_;
    Wakeup turn_end_ = Wakeup::calling<&RedisChannel::send_collected>(
        this, Wakeup::kCancelable);

    /* Calls without a reply yet. */
    CallQueue calls_;

    Backlog backlog_;
};

}  // namespace sl
