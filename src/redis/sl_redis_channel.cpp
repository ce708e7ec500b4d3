#include "redis/sl_redis_channel.h"

#include <algorithm>
#include <new>

namespace sl {

namespace {

/*
 * Neither hiredis's queue nor the backlog has a bound of its own for them.
 * Redis answers this many in about 100 ms: whatever came on top would only time
 * out.
 */
constexpr size_t kMaxCalls = 10000;

/*
 * In a log units are found by the request's id, so they are changed only once,
 * however often that is tried. Packed logs and buckets have no ids: what is
 * taken from them twice would be somebody else's. What is added twice is too
 * much, which is better than too little.
 */
bool may_be_repeated(const ScriptLimit &limit)
{
    return limit.algorithm == Algorithm::kLog || limit.true_cost > limit.cost;
}

/* After so long all that the limits have counted has left their windows; the
 * bucket that it was counted in may be as long as a window itself. */
ngx_msec_t longest_stay(const ScriptArgs &args)
{
    int64_t longest_us = 0;

    for (size_t i = 0; i < args.count; i++) {
        const ScriptLimit &limit = args.limits[i];
        int windows = limit.algorithm == Algorithm::kBuckets ? 2 : 1;

        longest_us = std::max(longest_us, windows * limit.window_us);
    }

    return static_cast<ngx_msec_t>(longest_us / 1000);
}

}  // namespace

RedisChannel::RedisChannel(const RedisSettings &settings, const ngx_str_t &name,
                           RedisLocator &locator, WorkerBreaker &breaker,
                           StoreMetrics &metrics, ChannelOwner &owner) noexcept
    : settings_(settings), owner_(owner), log_(settings, name),
      connection_(settings, locator, *this),
      recovery_(settings, breaker, metrics, log_, connection_, *this)
{}

RedisChannel::~RedisChannel()
{
    close();
}

void RedisChannel::close() noexcept
{
    connection_.close();
    recovery_.stop();
    turn_end_.cancel();

    send_collected();
    backlog_.drop_questions();
    backlog_.clear();
}

bool RedisChannel::is_full() const noexcept
{
    return call_count() + backlog_.size() >= kMaxCalls;
}

bool RedisChannel::is_usable() noexcept
{
    drop_if_stalled();

    if (recovery_.is_down()) {
        recovery_.look_soon();
        return false;
    }

    return connection_.accepts();
}

PendingQuestion *RedisChannel::ask(CallPtr &&call, Answer *answer) noexcept
{
    /* so that the server has something to do while this worker goes on */
    if (collected_.has_enough()) {
        send_collected();
        connection_.write_waiting_output();
    }

    if (is_full()) {
        log_.complain("too many checks are waiting");
        *answer = Answer::none(StoreError::kOverload);
        return nullptr;
    }

    RedisCall *asked = call.get();

    if (send(std::move(call)) != nullptr) {
        log_.complain("cannot send");
        *answer = Answer::none(StoreError::kConnection);
        return nullptr;
    }

    return asked;
}

RedisCall *RedisChannel::run(CallPtr &&errand, StoreError *why_not) noexcept
{
    RedisCall *sent = errand.get();

    if (is_full()) {
        *why_not = StoreError::kOverload;
        return nullptr;
    }

    if (send(std::move(errand)) != nullptr) {
        *why_not = StoreError::kConnection;
        return nullptr;
    }

    return sent;
}

CallPtr RedisChannel::adopt(CallPtr call, bool with_asking) noexcept
{
    if (!connection_.accepts() || is_full()) {
        return call;
    }

    call->excuse();
    call->set_asking(with_asking);

    return send(std::move(call));
}

void RedisChannel::settle(const ScriptArgs &all) noexcept
{
    bool is_uncertain = all.time_us == Store::kUncertain;
    ScriptArgs args = all.only([&](size_t i) {
        /* nobody knows when it was counted, by which others find it */
        return !is_uncertain || may_be_repeated(all.limits[i]);
    });

    if (args.count == 0) {
        return;
    }

    if (connection_.accepts()) {
        if (CallPtr call = settling_call(args)) {
            postpone(send(std::move(call)));
        }

        return;
    }

    /* each for itself, as some are of no use any more before others are */
    for (size_t i = 0; i < args.count; i++) {
        postpone(settling_call(args.only([i](size_t n) { return n == i; })));
    }
}

/* There is one call for all limits. Where only some of them may be tried again,
 * it has a part that can be. nullptr: out of memory. */
CallPtr RedisChannel::settling_call(const ScriptArgs &args) noexcept
{
    using Kind = RedisCall::Kind;

    ScriptArgs part =
        args.only([&](size_t i) { return may_be_repeated(args.limits[i]); });
    bool is_repeatable = part.count == args.count;
    CallPtr call = RedisCall::create(
        is_repeatable ? Kind::kSettle : Kind::kSettleOnce, args, nullptr);

    if (call == nullptr) {
        log_.complain("out of memory");
        return nullptr;
    }

    call->set_outdated_after(longest_stay(args));

    if (!is_repeatable && part.count > 0) {
        call->set_repeatable_part(settling_call(part));
    }

    return call;
}

/* Nothing if there is no call. */
void RedisChannel::postpone(CallPtr call) noexcept
{
    if (call != nullptr) {
        call = owner_.postpone(std::move(call));
    }

    if (call != nullptr && backlog_.postpone(std::move(call)) != nullptr) {
        log_.complain("what was counted could not be changed");
    }
}

/* ---- sending ---- */

CallPtr RedisChannel::send(CallPtr call) noexcept
{
    /* what it changes, or wants to see, must have been counted before */
    if (call->settles() || call->is_errand()) {
        send_collected();
    }

    if (!call->may_be_joined() || owner_.needs_one_slot()
        || connection_.holds_calls())
    {
        return send_alone(std::move(call));
    }

    call->set_out(*this, settings_.timeout);
    collected_.add(std::move(call));
    turn_end_.at_end_of_turn();

    return nullptr;
}

/* The timer runs also if nobody waits: that no reply comes is worth knowing all
 * the same. */
CallPtr RedisChannel::send_alone(CallPtr call) noexcept
{
    bool is_held = connection_.holds_calls();

    if (!is_held && !write(*call)) {
        return call;
    }

    call->set_out(*this, settings_.timeout);

    if (is_held) {
        backlog_.hold(std::move(call));
    } else {
        calls_.push(std::move(call));
    }

    return nullptr;
}

bool RedisChannel::write(RedisCall &call) noexcept
{
    return (!call.needs_asking() || connection_.send_asking())
           && connection_.send(&call, call.command().data(),
                               call.command().size());
}

void RedisChannel::send_collected() noexcept
{
    while (collected_.size() > 0) {
        CallGroup group = collected_.next_group();

        if (group.count > 1 && !connection_.holds_calls()
            && send_together(group)) {
            continue;
        }

        for (CallPtr &call : group) {
            call = send_alone(std::move(call));

            if (call != nullptr) {
                call->reply(Answer::none(StoreError::kConnection));
            }
        }
    }
}

/* False: without memory, or connection, they have to go alone. */
bool RedisChannel::send_together(CallGroup &group) noexcept
{
    std::unique_ptr<RedisBatch> batch(new (std::nothrow)
                                          RedisBatch(*this, group));
    char text[RedisBatch::kMaxSize];

    if (batch == nullptr) {
        return false;
    }

    std::string_view command = batch->write(text);

    if (!connection_.send(batch.get(), command.data(), command.size())) {
        return false;
    }

    /* it ends with its reply */
    batch.release();

    for (CallPtr &call : group) {
        calls_.push(std::move(call));
    }

    return true;
}

/* ---- no replies ---- */

void RedisChannel::timed_out(RedisCall &call) noexcept
{
    RedisCall::Watch watch(call);

    /* the reply may be there, if the worker had no time to read it */
    connection_.read_waiting_input();

    if (watch.is_gone()) {
        return;
    }

    call.set_late();
    call.reply(Answer::none(StoreError::kTimeout));
    recovery_.timed_out();
    recovery_.look_soon();

    /* frees the call, perhaps */
    drop_if_stalled();
}

/*
 * Replies come in order: if the oldest call is overdue by another timeout,
 * Redis hangs or the connection is dead, and waiting on it is over.
 *
 * While a connection is set up, connect_timeout has its say, and knows better
 * what to tell.
 *
 * Counted from when the timeout was noticed, not from when the call was sent:
 * after a worker has been held up (a slow disk, a busy machine) all its calls
 * look old before it has had a chance to read the replies.
 */
bool RedisChannel::is_stalled() const noexcept
{
    /* while a reply is being dealt with it does not hang, and hiredis must not
     * be called again from inside itself */
    return is_oldest_late() && connection_.is_up() && connection_.is_listening()
           && calls_.first()->late_for() >= settings_.timeout;
}

bool RedisChannel::is_oldest_late() const noexcept
{
    const RedisCall *oldest = calls_.first();

    return oldest != nullptr && oldest->is_late();
}

void RedisChannel::drop_if_stalled() noexcept
{
    if (is_stalled()) {
        connection_.read_waiting_input();
    }

    if (is_stalled()) {
        connection_.replace("it does not reply");
    }
}

bool RedisChannel::look_after_calls() noexcept
{
    drop_if_stalled();

    return is_oldest_late();
}

/* ---- the connection ---- */

void RedisChannel::send_backlog() noexcept
{
    backlog_.send_all([this](CallPtr call) { return send(std::move(call)); });
}

void RedisChannel::let_in() noexcept
{
    /* what waits for a server's return waits until it is known to count */
    if (connection_.accepts()) {
        send_backlog();
    }
}

void RedisChannel::connected() noexcept
{
    recovery_.connected();
    send_backlog();
    owner_.channel_up(*this);
}

void RedisChannel::disconnected(Trouble trouble, std::string_view reason,
                                ngx_msec_t began) noexcept
{
    backlog_.drop_questions();

    /* what is to be settled may not have to wait for this very server */
    backlog_.send_all(
        [this](CallPtr call) { return owner_.postpone(std::move(call)); });

    owner_.channel_down(*this);
    recovery_.disconnected(trouble, reason, began);
}

void RedisChannel::reconnecting() noexcept
{
    recovery_.reconnecting();
    owner_.channel_down(*this);
}

bool RedisChannel::probe_key(RedisKey *key) const noexcept
{
    return owner_.probe_key(*this, key);
}

bool RedisChannel::other_probe_key(RedisKey *key) const noexcept
{
    return owner_.other_probe_key(key);
}

bool RedisChannel::send_probe(AnswerReceiver &receiver) noexcept
{
    RedisKey key;
    bool has_key = probe_key(&key);
    CallPtr call =
        RedisCall::create(RedisCall::Kind::kProbe,
                          ScriptArgs::probe(&key, has_key ? 1 : 0), &receiver);

    return call != nullptr && send(std::move(call)) == nullptr;
}

}  // namespace sl
