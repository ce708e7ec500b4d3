#include "redis/sl_redis_channel.h"

#include <algorithm>
#include <new>

#include "base/pure/sl_escape.h"
#include "redis/pure/sl_redis_error.h"
#include "redis/sl_redis_script.h"

namespace sl {

namespace {

/*
 * hiredis's queue has no bound of its own. Redis answers this many in about
 * 100 ms: whatever came on top would only time out.
 */
constexpr ngx_uint_t kMaxCalls = 10000;

/* So many questions of one turn of the event loop do not wait for its end. */
constexpr ngx_uint_t kEnoughToSend = RedisBatch::kMaxCalls;

/* What waits for Redis to come back is bounded, too. */
constexpr ngx_uint_t kMaxBacklog = 10000;

/* Failures that do not take the store down are logged this often at most. */
constexpr ngx_msec_t kComplainEveryMs = 10000;

/* How often a worker looks whether the breaker has closed. */
constexpr ngx_msec_t kLookEveryMs = 100;

/* A wrong password does not mend itself, and Redis logs every attempt. */
constexpr ngx_msec_t kNeedsPersonDelayMs = 10000;

int64_t now_ms()
{
    return static_cast<int64_t>(ngx_current_msec);
}

uint32_t dice()
{
    return static_cast<uint32_t>(ngx_random());
}

/*
 * What a server says may contain anything, also a password that it did not
 * expect, and must stay one line.
 */
struct OneLine {
    char buffer[Outage::kMaxReason];
    ngx_str_t text;

    OneLine(std::string_view raw, const RedisSettings &settings) noexcept
    {
        size_t size = mask_secrets(raw,
                                   {view(settings.login.password),
                                    view(settings.sentinel_login.password)},
                                   buffer, sizeof(buffer));

        std::replace_if(
            buffer, buffer + size,
            [](unsigned char ch) { return ch < 0x20 || ch == 0x7f; }, '?');
        text = str({buffer, size});
    }
};

StoreError to_store_error(RedisError error)
{
    switch (error) {
    case RedisError::kUnavailable:
    case RedisError::kElsewhere:
        return StoreError::kUnavailable;

    case RedisError::kForbidden:
        return StoreError::kForbidden;

    case RedisError::kNoScript:
    case RedisError::kCrossSlot:
    case RedisError::kThisCall:
        break;
    }

    return StoreError::kScript;
}

bool needs_a_person(Trouble trouble)
{
    return trouble == Trouble::kForbidden || trouble == Trouble::kElsewhere;
}

ngx_msec_t least_delay(Trouble trouble)
{
    return needs_a_person(trouble) ? kNeedsPersonDelayMs : 0;
}

/* What to do about it, where the reason does not say so itself. */
const char *advice_on(Trouble trouble)
{
    return trouble == Trouble::kElsewhere
               ? "; it has only a part of a Redis Cluster's keys, use "
                 "cluster:// instead"
               : "";
}

/* There was no Redis that would have executed it, but there may be one later.
 */
bool has_failed(const redisReply *reply)
{
    if (reply == nullptr) {
        return true;
    }

    if (reply->type != REDIS_REPLY_ERROR) {
        return false;
    }

    RedisError error = classify_redis_error(text_of(reply));

    return error == RedisError::kUnavailable || error == RedisError::kForbidden;
}

}  // namespace

RedisChannel::RedisChannel(const RedisSettings &settings, const ngx_str_t &name,
                           RedisLocator &locator, BreakerState &breaker,
                           StoreMetrics &metrics, RedisRouter &router) noexcept
    : settings_(settings), name_(name), router_(router), breaker_(breaker),
      metrics_(metrics), connection_(settings, locator, *this), recovery_(),
      reason_(), reason_size_(0), ticket_(0), collected_(), collected_count_(0),
      turn_end_(), calls_(), call_count_(0), backlog_(), backlog_count_(0),
      silent_failures_(0), complained_at_(0)
{
    ngx_queue_init(&collected_);
    ngx_queue_init(&calls_);
    ngx_queue_init(&backlog_);

    turn_end_.handler = on_turn_end;
    turn_end_.data = this;
    turn_end_.log = ngx_cycle->log;

    /* a worker that has nothing else to do need not stay for it */
    recovery_.cancelable = 1;
    recovery_.handler = on_recovery;
    recovery_.data = this;
    recovery_.log = ngx_cycle->log;
}

RedisChannel::~RedisChannel()
{
    close();
}

void RedisChannel::open() noexcept
{
    /* of one that was killed and whose place this worker has taken */
    breaker_.set_connected(ngx_worker, false);

    connection_.open();
}

void RedisChannel::close() noexcept
{
    connection_.close();

    if (recovery_.timer_set) {
        ngx_del_timer(&recovery_);
    }

    if (turn_end_.posted) {
        ngx_delete_posted_event(&turn_end_);
    }

    send_collected();
    drop_questions();

    while (!ngx_queue_empty(&backlog_)) {
        delete next_of_backlog();
    }
}

bool RedisChannel::is_usable() noexcept
{
    drop_if_stalled();

    if (breaker_.is_open()) {
        recover_soon();
        return false;
    }

    return connection_.accepts();
}

/* That the store is down is in the log; that only this worker lacks it, not. */
void RedisChannel::turned_away() noexcept
{
    if (reason_size_ > 0 && !breaker_.is_open()) {
        complain({reason_, reason_size_});
    }
}

PendingQuestion *RedisChannel::ask(RedisCall *call, AnswerReceiver &receiver,
                                   StoreError *error) noexcept
{
    bool is_full = call_count_ >= kMaxCalls;

    /* so that the server has something to do while this worker goes on */
    if (collected_count_ >= kEnoughToSend) {
        send_collected();
        connection_.write_waiting_output();
    }

    if (is_full || !send(call)) {
        delete call;
        complain(is_full ? "too many checks are waiting" : "cannot send");
        *error = is_full ? StoreError::kOverload : StoreError::kConnection;
        return nullptr;
    }

    call->receiver = &receiver;

    return call;
}

bool RedisChannel::adopt(RedisCall *call, bool with_asking) noexcept
{
    if (!connection_.accepts() || call_count_ >= kMaxCalls) {
        return false;
    }

    /* that it is overdue is not this server's doing */
    call->late_since = ngx_current_msec;

    return (!with_asking || connection_.send_asking()) && send(call);
}

/* ---- taking back ---- */

/*
 * Logs and buckets apart: of a log an entry is taken back by its id, and so
 * only once, however often that is tried; of a bucket not, and not without the
 * time at which it was counted.
 */
void RedisChannel::take_back(const ScriptArgs &all) noexcept
{
    for (bool is_log : {true, false}) {
        if (!is_log && all.time_us == Store::kUncertain) {
            continue;
        }

        ScriptArgs args = all.only(
            [&](size_t i) { return (all.limits[i].buckets == 0) == is_log; });

        RedisCall *call = args.count > 0 ? RedisCall::create(args) : nullptr;

        if (call != nullptr) {
            call->is_repeatable = is_log;
            send_or_postpone(call);

        } else if (args.count > 0) {
            complain("out of memory");
        }
    }
}

void RedisChannel::send_or_postpone(RedisCall *call) noexcept
{
    if (!connection_.accepts() || !send(call)) {
        postpone(call);
    }
}

void RedisChannel::postpone(RedisCall *call) noexcept
{
    if (backlog_count_ == kMaxBacklog) {
        delete call;
        complain("a count could not be taken back");
        return;
    }

    call->is_late = false;

    if (RedisCall::expiring == call) {
        RedisCall::expiring = nullptr;
    }

    wait_in_backlog(call);
}

void RedisChannel::wait_in_backlog(RedisCall *call) noexcept
{
    call->channel = this;
    ngx_queue_insert_tail(&backlog_, static_cast<ngx_queue_t *>(call));
    backlog_count_++;
}

RedisCall *RedisChannel::next_of_backlog() noexcept
{
    auto *call = static_cast<RedisCall *>(ngx_queue_head(&backlog_));

    ngx_queue_remove(static_cast<ngx_queue_t *>(call));
    backlog_count_--;

    return call;
}

void RedisChannel::send_backlog() noexcept
{
    /* as many as there are: what cannot be sent goes to the end */
    for (ngx_uint_t n = backlog_count_; n > 0; n--) {
        RedisCall *call = next_of_backlog();
        bool is_wanted = call->receiver != nullptr || !call->is_question;

        if (!is_wanted) {
            delete call;
        } else if (!send(call)) {
            wait_in_backlog(call);
        }
    }
}

/* Those who ask do not wait for its return. */
void RedisChannel::drop_questions() noexcept
{
    for (ngx_uint_t n = backlog_count_; n > 0; n--) {
        RedisCall *call = next_of_backlog();

        if (call->is_question) {
            call->reply(Answer::none(StoreError::kConnection));
            delete call;
        } else {
            wait_in_backlog(call);
        }
    }
}

/* The answer has come, but nobody waits for it any more. */
void RedisChannel::take_back_counted(const Provisional &provisional,
                                     const Answer &answer) noexcept
{
    ScriptArgs counted = provisional.args.only([&](size_t i) {
        return answer.states[provisional.index[i]].is_counted;
    });

    counted.time_us = answer.time_us;
    take_back(counted);
}

/* The answer was lost: nobody knows whether it was counted. */
void RedisChannel::take_back_uncertain(const Provisional &provisional) noexcept
{
    ScriptArgs uncertain = provisional.args;

    uncertain.time_us = Store::kUncertain;
    take_back(uncertain);
}

/* ---- when it is away ---- */

/* Everything that is done about it is done from here, until all is well. */
void RedisChannel::recover() noexcept
{
    drop_if_stalled();

    if (breaker_.is_open()) {
        if (ticket_ == 0) {
            ticket_ = breaker_.take_probe(now_ms(), probe_span());

            if (ticket_ != 0) {
                connection_.is_up() ? probe() : connection_.reopen();
            }
        }

        recover_soon();

    } else if (!connection_.accepts()) {
        connection_.reopen();
    }

    /* nobody may come to notice that it has stalled */
    if (oldest_if_late() != nullptr) {
        recover_soon();
    }
}

/* To find it, to connect and to ask. */
int64_t RedisChannel::probe_span() const noexcept
{
    return static_cast<int64_t>(settings_.connect_timeout
                                    * (settings_.endpoint_count + 1)
                                + settings_.timeout + kLookEveryMs);
}

void RedisChannel::recover_soon() noexcept
{
    if (!recovery_.timer_set) {
        ngx_add_timer(&recovery_, kLookEveryMs - dice() % (kLookEveryMs / 2));
    }
}

void RedisChannel::on_recovery(ngx_event_t *ev) noexcept
{
    static_cast<RedisChannel *>(ev->data)->recover();
}

void RedisChannel::disconnected(Trouble trouble, std::string_view reason,
                                ngx_msec_t began) noexcept
{
    auto least = static_cast<int64_t>(least_delay(trouble));

    if (began != 0) {
        add(metrics_.connect_failures);
    }

    recover_soon();
    drop_questions();
    breaker_.set_connected(ngx_worker, false);
    router_.channel_down(*this);

    if (ticket_ != 0) {
        probe_failed(least_delay(trouble));
    }

    /* what Redis says to a check concerns all; that this worker cannot connect,
     * or hears nothing, does only if no other one is better off */
    bool is_told = began == 0 && trouble != Trouble::kUnreachable;

    reason_size_ = 0;

    if (trouble == Trouble::kLocal
        || (!is_told && breaker_.is_connected_elsewhere(ngx_worker)))
    {
        /* worth a line if somebody asks before it has mended itself */
        reason_size_ = reason.copy(reason_, sizeof(reason_));
        return;
    }

    if (!breaker_.is_open()) {
        breaker_.failed_for_all(now_ms(), least, dice());
    }

    /* a different trouble on the way back is news, the same one is not */
    if (breaker_.is_news(static_cast<uint32_t>(trouble))) {
        log_down(trouble, reason);
    }
}

void RedisChannel::log_down(Trouble trouble, std::string_view reason) noexcept
{
    OneLine why(reason, settings_);
    ngx_uint_t level = needs_a_person(trouble) ? NGX_LOG_CRIT : NGX_LOG_ERR;

    breaker_.explain(server(), view(why.text));
    ngx_log_error(level, ngx_cycle->log, 0,
                  "sliding_limit: redis \"%V\" is down: %V%s", &name_,
                  &why.text, advice_on(trouble));
}

/* Of a cluster's; its name begins with what they have in common. */
std::string_view RedisChannel::server() const noexcept
{
    constexpr std::string_view kAt = " at ";

    std::string_view rest = view(name_).substr(settings_.name.len);

    return rest.substr(std::min(rest.size(), kAt.size()));
}

/*
 * A real call, and one that must be answered in the time that a request waits:
 * the set-up of a connection has more.
 */
void RedisChannel::probe() noexcept
{
    RedisKey key;
    bool has_key = probe_key(&key);
    ScriptArgs args = ScriptArgs::probe(&key, has_key ? 1 : 0);
    RedisCall *call = RedisCall::create(args);

    if (call != nullptr) {
        call->is_question = true;
        call->limits = args.count;
        call->receiver = this;
    }

    if (call == nullptr || !send(call)) {
        delete call;
        probe_failed(0);
    }
}

bool RedisChannel::is_probe(const RedisCall &call) const noexcept
{
    return call.receiver == this;
}

void RedisChannel::receive(const Answer &of_probe) noexcept
{
    /* the connection broke, and that has been dealt with */
    if (ticket_ == 0) {
        return;
    }

    if (!of_probe.known) {
        probe_failed(0);
        return;
    }

    /* at the level of the failure: who reads of one must read of the other */
    if (breaker_.probe_succeeded(ticket_, now_ms())) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "sliding_limit: redis \"%V\" is back after %L ms", &name_,
                      breaker_.open_for(now_ms()));
    }

    ticket_ = 0;
}

void RedisChannel::probe_failed(ngx_msec_t least_delay) noexcept
{
    breaker_.probe_failed(ticket_, now_ms(), static_cast<int64_t>(least_delay),
                          dice());
    ticket_ = 0;
}

void RedisChannel::connected() noexcept
{
    add(metrics_.connects);
    breaker_.set_connected(ngx_worker, true);

    /* a new connection that works is as good a reason as any to look */
    if (ticket_ == 0) {
        ticket_ = breaker_.take_probe_early(now_ms(), probe_span());
    }

    if (ticket_ != 0) {
        probe();
    }

    send_backlog();
    router_.channel_up(*this);
}

void RedisChannel::reconnecting() noexcept
{
    breaker_.set_connected(ngx_worker, false);
    router_.channel_down(*this);
}

bool RedisChannel::probe_key(RedisKey *key) const noexcept
{
    return router_.probe_key(*this, key);
}

bool RedisChannel::other_probe_key(RedisKey *key) const noexcept
{
    return router_.other_probe_key(key);
}

/* ---- calls ---- */

bool RedisChannel::send(RedisCall *call) noexcept
{
    /* what it takes back must have been counted before */
    if (!call->is_question) {
        send_collected();
    }

    if (!call->is_ordinary || router_.needs_one_slot()
        || connection_.is_locating()) {
        return send_alone(call);
    }

    ngx_queue_insert_tail(&collected_, static_cast<ngx_queue_t *>(call));
    collected_count_++;

    if (!turn_end_.posted) {
        ngx_post_event(&turn_end_, &ngx_posted_events);
    }

    return is_on_its_way(call, true);
}

bool RedisChannel::send_alone(RedisCall *call) noexcept
{
    bool is_held = connection_.is_locating();

    call->on_reply = on_reply;

    if (!is_held && !connection_.send(call, call->command, call->size)) {
        return false;
    }

    if (is_held) {
        wait_in_backlog(call);
    } else {
        ngx_queue_insert_tail(&calls_, static_cast<ngx_queue_t *>(call));
    }

    return is_on_its_way(call, !is_held);
}

/* Always true. */
bool RedisChannel::is_on_its_way(RedisCall *call, bool is_sent) noexcept
{
    call->channel = this;
    call_count_ += is_sent ? 1 : 0;

    /* also if nobody waits: that no reply comes is worth knowing all the same.
     * Whoever waits does so from the first time it was sent. */
    if (!call->timer.timer_set) {
        call->timer.handler = on_timeout;
        ngx_add_timer(&call->timer, settings_.timeout);
    }

    return true;
}

void RedisChannel::on_turn_end(ngx_event_t *ev) noexcept
{
    static_cast<RedisChannel *>(ev->data)->send_collected();
}

void RedisChannel::send_collected() noexcept
{
    collected_count_ = 0;

    while (!ngx_queue_empty(&collected_)) {
        RedisBatch *batch = connection_.is_locating() ? nullptr : next_batch();

        if (batch != nullptr) {
            send_batch(batch);
            continue;
        }

        /* there are no others, or it has to wait, or there is no memory */
        auto *call = static_cast<RedisCall *>(ngx_queue_head(&collected_));

        ngx_queue_remove(static_cast<ngx_queue_t *>(call));
        call_count_--;

        if (!send_alone(call)) {
            call->reply(Answer::none(StoreError::kConnection));
            delete call;
        }
    }
}

/* The next one that has the same limits; nullptr: there is none. */
RedisCall *RedisChannel::next_alike(RedisCall *call) noexcept
{
    ngx_queue_t *next = ngx_queue_next(static_cast<ngx_queue_t *>(call));

    for (; next != ngx_queue_sentinel(&collected_); next = ngx_queue_next(next))
    {
        if (static_cast<RedisCall *>(next)->shared == call->shared) {
            return static_cast<RedisCall *>(next);
        }
    }

    return nullptr;
}

/* The first one and those that can go with it; nullptr if none can. */
RedisBatch *RedisChannel::next_batch() noexcept
{
    auto *call = static_cast<RedisCall *>(ngx_queue_head(&collected_));
    size_t most = RedisBatch::kMaxCalls / call->limits;
    RedisBatch *batch = most > 1 && next_alike(call) != nullptr
                            ? new (std::nothrow) RedisBatch()
                            : nullptr;

    if (batch == nullptr) {
        return nullptr;
    }

    while (call != nullptr && batch->count < most) {
        RedisCall *next = next_alike(call);

        ngx_queue_remove(static_cast<ngx_queue_t *>(call));
        batch->calls[batch->count++] = call;
        call = next;
    }

    return batch;
}

void RedisChannel::send_batch(RedisBatch *batch) noexcept
{
    char text[RedisBatch::kMaxSize];
    size_t size = batch->write(text);

    for (size_t i = 0; i < batch->count; i++) {
        ngx_queue_insert_tail(&calls_,
                              static_cast<ngx_queue_t *>(batch->calls[i]));
    }

    batch->channel = this;
    batch->on_reply = on_batch_reply;

    if (!connection_.send(batch, text, size)) {
        on_batch_reply(batch, nullptr);
    }
}

void RedisChannel::on_batch_reply(RedisCommand *command,
                                  redisReply *reply) noexcept
{
    auto *batch = static_cast<RedisBatch *>(command);
    RedisChannel *channel = batch->channel;

    for (size_t i = 0; i < batch->count; i++) {
        ngx_queue_remove(static_cast<ngx_queue_t *>(batch->calls[i]));
        channel->call_count_--;
    }

    channel->settle(batch, reply);
    delete batch;
}

/* Each as if it had been asked alone; but what is wrong is said once. */
void RedisChannel::settle(RedisBatch *batch, const redisReply *reply) noexcept
{
    std::string_view error;
    Answer all = Answer::none(StoreError::kConnection);
    size_t limits = batch->calls[0]->limits;
    uint32_t again = 0;
    bool has_failed = false;

    if (reply != nullptr && reply->type == REDIS_REPLY_ERROR) {
        error = text_of(reply);

        RedisError kind = classify_redis_error(error);

        all.error = to_store_error(kind);

        if (kind == RedisError::kCrossSlot) {
            router_.found_slots();
        }

        /* Something is wrong with this call, or only with asking together: a
         * proxy may have words of its own for that. Whatever it has counted all
         * the same is known by its id, and not counted twice. */
        if (kind == RedisError::kCrossSlot || kind == RedisError::kThisCall) {
            again = ~uint32_t{0};
        }

    } else if (reply != nullptr) {
        all.error = StoreError::kNonsense;
        all.known = read_reply(reply, batch->count * limits, &all, &again);
    }

    for (size_t i = 0; i < batch->count; i++) {
        RedisCall *call = batch->calls[i];
        Answer answer = Answer::none(all.error);

        answer.known = all.known;
        answer.time_us = all.time_us;
        std::copy_n(all.states + i * limits, limits, answer.states);

        if (again & uint32_t{1} << i * limits) {
            if (ask_again(call)) {
                continue;
            }

            answer = Answer::none(StoreError::kConnection);
        }

        if (!error.empty() && try_elsewhere(call, error)) {
            continue;
        }

        deliver(call, answer);
        delete call;
        has_failed = has_failed || !answer.known;
    }

    if (has_failed && !error.empty()) {
        report_error(error);

    } else if (has_failed && all.error == StoreError::kNonsense) {
        not_understood();
    }
}

void RedisChannel::on_reply(RedisCommand *command, redisReply *reply) noexcept
{
    auto *call = static_cast<RedisCall *>(command);
    RedisChannel *channel = call->channel;

    ngx_queue_remove(static_cast<ngx_queue_t *>(call));
    channel->call_count_--;

    if (reply != nullptr && reply->type == REDIS_REPLY_ERROR
        && channel->try_elsewhere(call, text_of(reply)))
    {
        return;
    }

    if (call->is_repeatable && has_failed(reply)) {
        call->stop_timer();
        channel->postpone(call);

        if (reply != nullptr) {
            channel->report_error(text_of(reply));
        }

        return;
    }

    if (channel->settle(call, reply)) {
        delete call;
    }
}

/* It has not run, and somewhere, or once more, it may. */
bool RedisChannel::try_elsewhere(RedisCall *call,
                                 std::string_view error) noexcept
{
    switch (classify_redis_error(error)) {
    case RedisError::kNoScript:
        return retry_with_script(call);

    case RedisError::kElsewhere:
        return !is_probe(*call) && router_.redirect(call, error);

    default:
        return false;
    }
}

/*
 * Redis has restarted, failed over or been told to forget its scripts. The
 * call has not run, so asking again counts it once; also if its asker is gone.
 */
bool RedisChannel::retry_with_script(RedisCall *call) noexcept
{
    if (call->retried) {
        return false;
    }

    call->retried = true;

    return connection_.send_script() && send(call);
}

/*
 * The script has counted nothing yet: to decide, it has more to tidy up than it
 * does in one call. Each call leaves it less, and lets others have their turn.
 * True if it is on its way once more, or gone, because nobody waits any longer.
 */
bool RedisChannel::ask_again(RedisCall *call) noexcept
{
    if (call->is_late) {
        delete call;
        return true;
    }

    breaker_.succeeded();
    call->is_ordinary = false;

    return send(call);
}

/* False: the call is not the caller's any more. */
bool RedisChannel::settle(RedisCall *call, const redisReply *reply) noexcept
{
    if (reply == nullptr) {
        /* the connection has said why it broke */
        deliver(call, Answer::none(StoreError::kConnection));
        return true;
    }

    if (reply->type == REDIS_REPLY_ERROR) {
        RedisError error = classify_redis_error(text_of(reply));
        Answer answer = Answer::none(to_store_error(error));

        /* a probe asks whether the server answers, not who has the slot */
        answer.known = is_probe(*call)
                       && settings_.topology == Topology::kCluster
                       && error == RedisError::kElsewhere;

        /* first: whoever asked may ask again, with what is known then */
        if (!answer.known) {
            report_error(text_of(reply));
        }

        call->reply(answer);
        return true;
    }

    if (!call->is_question) {
        if (!call->is_late) {
            breaker_.succeeded();
        }

        return true;
    }

    Answer answer = Answer::none(StoreError::kNonsense);
    uint32_t again = 0;

    answer.known = read_reply(reply, call->limits, &answer, &again);

    if (again != 0) {
        if (ask_again(call)) {
            return false;
        }

        answer = Answer::none(StoreError::kConnection);
    }

    deliver(call, answer);

    if (answer.error == StoreError::kNonsense && !answer.known) {
        not_understood();
    }

    return true;
}

/* To whoever waits; and if nobody does, what is provisional is taken back. */
void RedisChannel::deliver(RedisCall *call, const Answer &answer) noexcept
{
    if (answer.known && !call->is_late) {
        breaker_.succeeded();
    }

    if (answer.known && call->receiver == nullptr
        && call->provisional != nullptr) {
        take_back_counted(*call->provisional, answer);
    }

    call->reply(answer);

    if (answer.error == StoreError::kConnection && !answer.known
        && call->provisional != nullptr)
    {
        take_back_uncertain(*call->provisional);
    }
}

void RedisChannel::not_understood() noexcept
{
    connection_.fail(Trouble::kUnreachable,
                     "its answer is not what the script returns");
}

void RedisChannel::report_error(std::string_view error) noexcept
{
    bool is_cluster = settings_.topology == Topology::kCluster;

    switch (classify_redis_error(error)) {
    case RedisError::kUnavailable:
        connection_.fail(Trouble::kUnavailable, error);
        break;

    case RedisError::kForbidden:
        connection_.fail(Trouble::kForbidden, error);
        break;

    case RedisError::kElsewhere:
        if (is_cluster) {
            complain(error);
        } else {
            connection_.fail(Trouble::kElsewhere, error);
        }

        break;

    case RedisError::kCrossSlot:
        if (is_cluster) {
            complain(error);
        } else {
            router_.found_slots();
        }

        break;

    case RedisError::kNoScript:
    case RedisError::kThisCall:
        complain(error);
        break;
    }
}

void RedisChannel::on_timeout(ngx_event_t *ev) noexcept
{
    auto *call = static_cast<RedisCall *>(ev->data);
    RedisChannel *channel = call->channel;

    /* the reply may be there, if the worker had no time to read it */
    RedisCall::expiring = call;
    channel->connection_.read_waiting_input();

    if (RedisCall::expiring != call) {
        return;
    }

    RedisCall::expiring = nullptr;

    call->is_late = true;
    call->late_since = ngx_current_msec;

    call->reply(Answer::none(StoreError::kTimeout));

    bool has_opened = channel->breaker_.failed(now_ms(), dice());

    if (has_opened
        && channel->breaker_.is_news(
            static_cast<uint32_t>(Trouble::kUnreachable)))
    {
        channel->log_down(Trouble::kUnreachable,
                          "no replies within the timeout");

    } else if (!channel->breaker_.is_open()) {
        channel->complain("no reply within the timeout");
    }

    channel->recover_soon();

    /* frees the call, perhaps */
    channel->drop_if_stalled();
}

/*
 * Replies come in order: if the oldest call is overdue by another timeout,
 * Redis hangs or the connection is dead, and waiting on it is over.
 *
 * Counted from when the timeout was noticed, not from when the call was sent:
 * after a worker has been held up (a slow disk, a busy machine) all its calls
 * look old before it has had a chance to read the replies.
 */
bool RedisChannel::is_stalled() const noexcept
{
    const RedisCall *oldest = oldest_if_late();

    /* nor does it hang while a reply is being dealt with: hiredis is not to be
     * called again from inside itself */
    return oldest != nullptr && !connection_.is_delivering()
           && ngx_current_msec - oldest->late_since >= settings_.timeout;
}

/* nullptr: it is not, or there is none. */
const RedisCall *RedisChannel::oldest_if_late() const noexcept
{
    if (ngx_queue_empty(&calls_)) {
        return nullptr;
    }

    auto *oldest = static_cast<const RedisCall *>(ngx_queue_head(&calls_));

    return oldest->is_late ? oldest : nullptr;
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

/* For failures that say nothing about the next check: a line now and then. */
void RedisChannel::complain(std::string_view what) noexcept
{
    silent_failures_++;

    if (complained_at_ != 0
        && ngx_current_msec - complained_at_ < kComplainEveryMs) {
        return;
    }

    OneLine why(what, settings_);

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "sliding_limit: redis \"%V\": %ui check(s) failed, "
                  "the last one because: %V",
                  &name_, silent_failures_, &why.text);

    silent_failures_ = 0;
    complained_at_ = ngx_current_msec;
}

}  // namespace sl
