#include "sl_redis_store.h"

#include <new>

#include "../core/sl_key.h"
#include "../core/sl_redis_error.h"
#include "../core/sl_uuid.h"
#include "sl_redis_script.h"

namespace sl {

namespace {

/*
 * hiredis's queue has no bound of its own. Redis answers this many in about
 * 100 ms: whatever came on top would only time out.
 */
constexpr ngx_uint_t kMaxCalls = 10000;

/* What waits for Redis to come back is bounded, too. */
constexpr ngx_uint_t kMaxBacklog = 10000;

/* Failures that do not take the store down are logged this often at most. */
constexpr ngx_msec_t kComplainEveryMs = 10000;

/* How often a worker looks whether the breaker has closed. */
constexpr ngx_msec_t kLookEveryMs = 100;

/* A wrong password does not mend itself, and Redis logs every attempt. */
constexpr ngx_msec_t kForbiddenDelayMs = 10000;

int64_t now_ms()
{
    return static_cast<int64_t>(ngx_current_msec);
}

uint32_t dice()
{
    return static_cast<uint32_t>(ngx_random());
}

ngx_msec_t least_delay(Trouble trouble)
{
    return trouble == Trouble::kForbidden ? kForbiddenDelayMs : 0;
}

bool read_reply(const redisReply *reply, size_t limits, Answer *answer)
{
    int64_t numbers[numbers_in_answer(kMaxLimits)];

    if (reply->type != REDIS_REPLY_ARRAY
        || reply->elements != numbers_in_answer(limits))
    {
        return false;
    }

    for (size_t i = 0; i < reply->elements; i++) {
        if (reply->element[i]->type != REDIS_REPLY_INTEGER) {
            return false;
        }

        numbers[i] = reply->element[i]->integer;
    }

    return read_answer(numbers, reply->elements, limits, answer->states,
                       &answer->time_us);
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

/* A limit as the script wants it. */
struct ScriptLimit {
    RedisKey key;
    int64_t window_us;
    int64_t max;
    int64_t cost;
    unsigned buckets;
    const char *rule;
};

ScriptLimit script_limit(const LimitQuery &limit)
{
    static const char *const kRules[2][2] = {{"", "n"}, {"d", "dn"}};

    return ScriptLimit{redis_key(limit.zone, limit.key),
                       limit.window_us,
                       limit.max,
                       limit.cost,
                       limit.buckets,
                       kRules[limit.counts_refused][limit.dry_run]};
}

constexpr int64_t kAsk = -1;

}  // namespace

/* What lua/sliding_window.lua is called with. */
struct RedisStore::ScriptArgs {
    ScriptLimit limits[kMaxLimits];
    size_t count;
    std::string_view id;

    /* kAsk, or of the answer whose counts are to be taken back. */
    int64_t time_us;

    ScriptArgs() noexcept : limits(), count(0), time_us(kAsk) {}

    ScriptArgs(const Query &query, int64_t time) noexcept
        : count(query.count), id(query.id), time_us(time)
    {
        for (size_t i = 0; i < count; i++) {
            limits[i] = script_limit(query.limits[i]);
        }
    }

    /* Those of the limits whose index is picked. */
    template <typename Predicate>
    ScriptArgs only(Predicate is_picked) const noexcept
    {
        ScriptArgs some;

        some.id = id;
        some.time_us = time_us;

        for (size_t i = 0; i < count; i++) {
            if (is_picked(i)) {
                some.limits[some.count++] = limits[i];
            }
        }

        return some;
    }
};

/* What is to be taken back if the answer finds nobody. */
struct RedisStore::Provisional {
    /* Has no id of its own: that is in `id`. */
    ScriptArgs args;

    /* Which limit of the question each of them is. */
    size_t index[kMaxLimits];

    char id[kUuidSize];

    /* nullptr if there is nothing provisional in it, or no memory. */
    static Provisional *of(const Query &query, const ScriptArgs &all) noexcept;
};

RedisStore::Provisional *RedisStore::Provisional::of(
    const Query &query, const ScriptArgs &all) noexcept
{
    Provisional *p = nullptr;

    for (size_t i = 0; i < query.count; i++) {
        if (!query.limits[i].provisional) {
            continue;
        }

        if (p == nullptr) {
            p = new (std::nothrow) Provisional();
        }

        if (p != nullptr) {
            p->index[p->args.count] = i;
            p->args.limits[p->args.count++] = all.limits[i];
        }
    }

    if (p != nullptr) {
        ngx_memcpy(p->id, query.id.data(), kUuidSize);
        p->args.id = {p->id, kUuidSize};
    }

    return p;
}

/*
 * A call on its way. The store owns it until the reply has come or the
 * connection broke, which may be long after its asker gave up or went away.
 */
struct RedisStore::Call final : RedisCommand, PendingQuestion, ngx_queue_t {
    RedisStore *store;

    /* nullptr once answered, timed out or abandoned. */
    AnswerReceiver *receiver;

    ngx_event_t timer;

    /* How many the question is about; 0: it is not a question. */
    size_t limits;

    /* What to take back if it is not known or not wanted; nullptr: nothing. */
    Provisional *provisional;

    /* It takes something back, and may do so twice. */
    bool is_repeatable;

    /* Its time is up and the reply has not come; since when. */
    bool is_late;
    ngx_msec_t late_since;

    /* Kept for a second try if Redis lost the script; freed by hiredis. */
    char *command;
    int size;
    bool retried;

    ~Call()
    {
        redisFreeCommand(command);
        delete provisional;
        stop_timer();

        if (store->expiring_ == this) {
            store->expiring_ = nullptr;
        }
    }

    /* Answers whoever still waits. */
    void reply(const Answer &answer) noexcept
    {
        AnswerReceiver *to = receiver;

        receiver = nullptr;
        stop_timer();

        if (to != nullptr) {
            to->receive(answer);
        }
    }

    /* The timer stays: that no reply comes is worth knowing all the same. */
    void abandon(bool keep_provisional) noexcept override
    {
        receiver = nullptr;

        if (keep_provisional) {
            delete provisional;
            provisional = nullptr;
        }
    }

    void stop_timer() noexcept
    {
        if (timer.timer_set) {
            ngx_del_timer(&timer);
        }
    }
};

RedisStore::RedisStore(const RedisSettings &settings) noexcept
    : settings_(settings), connection_(settings, *this), shared_(nullptr),
      recovery_(), ticket_(0), calls_(), call_count_(0), backlog_(),
      backlog_count_(0), expiring_(nullptr), silent_failures_(0),
      complained_at_(0)
{
    ngx_queue_init(&calls_);
    ngx_queue_init(&backlog_);

    /* a worker that has nothing else to do need not stay for it */
    recovery_.cancelable = 1;
    recovery_.handler = on_recovery;
    recovery_.data = this;
}

/* Not reused by a reload: workers of the old configuration, who may have an
 * old password, do not decide for those of the new one. */
bool RedisStore::share(ngx_conf_t *cf, const ngx_str_t &name) noexcept
{
    ngx_str_t zone_name;

    zone_name.len = sizeof("sliding_limit:") - 1 + name.len;
    zone_name.data =
        static_cast<u_char *>(ngx_pnalloc(cf->pool, zone_name.len));

    if (zone_name.data == nullptr) {
        return false;
    }

    ngx_sprintf(zone_name.data, "sliding_limit:%V", &name);

    shared_ = ngx_shared_memory_add(cf, &zone_name, 8 * ngx_pagesize,
                                    &ngx_http_sliding_limit_module);

    if (shared_ == nullptr) {
        return false;
    }

    shared_->init = init_shared;
    shared_->noreuse = 1;

    return true;
}

ngx_int_t RedisStore::init_shared(ngx_shm_zone_t *zone, void *) noexcept
{
    auto *pool = reinterpret_cast<ngx_slab_pool_t *>(zone->shm.addr);
    void *memory = ngx_slab_alloc(pool, sizeof(BreakerState));

    if (memory == nullptr) {
        return NGX_ERROR;
    }

    zone->data = new (memory) BreakerState();

    return NGX_OK;
}

Breaker RedisStore::breaker() const noexcept
{
    return Breaker(*static_cast<BreakerState *>(shared_->data));
}

void RedisStore::start() noexcept
{
    recovery_.log = ngx_cycle->log;

    connection_.open();
}

void RedisStore::stop() noexcept
{
    connection_.close();

    if (recovery_.timer_set) {
        ngx_del_timer(&recovery_);
    }

    while (!ngx_queue_empty(&backlog_)) {
        auto *call = static_cast<Call *>(ngx_queue_head(&backlog_));

        ngx_queue_remove(static_cast<ngx_queue_t *>(call));
        delete call;
    }

    backlog_count_ = 0;
}

PendingQuestion *RedisStore::ask(const Query &query, AnswerReceiver &receiver,
                                 Answer *answer) noexcept
{
    answer->known = false;

    drop_if_stalled();

    if (breaker().is_open()) {
        recover_soon();
        return nullptr;
    }

    if (!connection_.accepts()) {
        return nullptr;
    }

    if (call_count_ >= kMaxCalls) {
        complain("too many checks are waiting");
        return nullptr;
    }

    ScriptArgs args(query, kAsk);
    Call *call = new_call(args);

    if (call == nullptr) {
        complain("out of memory");
        return nullptr;
    }

    call->limits = query.count;
    call->provisional = Provisional::of(query, args);

    if (!send(call)) {
        delete call;
        complain("cannot send");
        return nullptr;
    }

    call->receiver = &receiver;
    ngx_add_timer(&call->timer, settings_.timeout);

    return call;
}

void RedisStore::take_back(const Query &query, int64_t time_us) noexcept
{
    take_back(ScriptArgs(query, time_us));
}

/*
 * Logs and buckets apart: of a log an entry is taken back by its id, and so
 * only once, however often that is tried; of a bucket not.
 */
void RedisStore::take_back(const ScriptArgs &all) noexcept
{
    for (bool is_log : {true, false}) {
        ScriptArgs args = all.only(
            [&](size_t i) { return (all.limits[i].buckets == 0) == is_log; });

        Call *call = args.count > 0 ? new_call(args) : nullptr;

        if (call != nullptr) {
            call->is_repeatable = is_log;
            send_or_postpone(call);

        } else if (args.count > 0) {
            complain("out of memory");
        }
    }
}

void RedisStore::send_or_postpone(Call *call) noexcept
{
    if (!connection_.accepts() || !send(call)) {
        postpone(call);
        return;
    }

    /* that no reply comes is worth knowing here, too */
    ngx_add_timer(&call->timer, settings_.timeout);
}

void RedisStore::postpone(Call *call) noexcept
{
    if (backlog_count_ == kMaxBacklog) {
        delete call;
        complain("a count could not be taken back");
        return;
    }

    call->is_late = false;
    ngx_queue_insert_tail(&backlog_, static_cast<ngx_queue_t *>(call));
    backlog_count_++;
}

/* ---- when it is away ---- */

/* Everything that is done about it is done from here, until all is well. */
void RedisStore::recover() noexcept
{
    if (breaker().is_open()) {
        int64_t span = static_cast<int64_t>(settings_.connect_timeout
                                            + settings_.timeout + kLookEveryMs);

        if (ticket_ == 0) {
            ticket_ = breaker().take_probe(now_ms(), span);

            if (ticket_ != 0) {
                connection_.is_up() ? probe() : connection_.reopen();
            }
        }

        recover_soon();

    } else if (!connection_.accepts()) {
        connection_.reopen();
    }
}

void RedisStore::recover_soon() noexcept
{
    if (!recovery_.timer_set) {
        ngx_add_timer(&recovery_, kLookEveryMs - dice() % (kLookEveryMs / 2));
    }
}

void RedisStore::on_recovery(ngx_event_t *ev) noexcept
{
    static_cast<RedisStore *>(ev->data)->recover();
}

void RedisStore::disconnected(Trouble trouble, std::string_view reason,
                              ngx_msec_t began) noexcept
{
    auto least = static_cast<int64_t>(least_delay(trouble));

    recover_soon();

    if (ticket_ != 0) {
        probe_failed(least_delay(trouble));
    }

    if (trouble == Trouble::kLocal) {
        complain(reason);
        return;
    }

    /* what Redis itself says concerns all; silence perhaps only this worker */
    int64_t since = began != 0 ? static_cast<int64_t>(began) : now_ms();

    if (began == 0 && trouble == Trouble::kUnreachable) {
        since -= static_cast<int64_t>(2 * settings_.timeout);
    }

    bool was_open = breaker().is_open();

    if (!was_open && !breaker().failed_for_all(now_ms(), since, least, dice()))
    {
        complain(reason);
        return;
    }

    /* a different trouble on the way back is news, the same one is not */
    if (breaker().is_news(static_cast<uint32_t>(trouble))) {
        log_down(trouble, reason);
    }
}

void RedisStore::log_down(Trouble trouble, std::string_view reason) noexcept
{
    ngx_str_t why = str(reason);
    ngx_uint_t level =
        trouble == Trouble::kForbidden ? NGX_LOG_CRIT : NGX_LOG_ERR;

    ngx_log_error(level, ngx_cycle->log, 0,
                  "sliding_limit: redis \"%V\" is down: %V", &settings_.name,
                  &why);
}

/*
 * A real call, and one that must be answered in the time that a request waits:
 * the set-up of a connection has more.
 */
void RedisStore::probe() noexcept
{
    Query query;

    query.count = 1;
    query.id = "probe";
    query.limits[0] =
        LimitQuery{"", "probe", 100000, 1000000, 1, 0, false, false, false};

    Call *call = new_call(ScriptArgs(query, kAsk));

    if (call == nullptr || !send(call)) {
        delete call;
        probe_failed(0);
        return;
    }

    call->limits = 1;
    call->receiver = this;
    ngx_add_timer(&call->timer, settings_.timeout);
}

void RedisStore::receive(const Answer &of_probe) noexcept
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
    if (breaker().probe_succeeded(ticket_, now_ms())) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "sliding_limit: redis \"%V\" is back after %L ms",
                      &settings_.name, breaker().open_for(now_ms()));
    }

    ticket_ = 0;
}

void RedisStore::probe_failed(ngx_msec_t least_delay) noexcept
{
    breaker().probe_failed(ticket_, now_ms(), static_cast<int64_t>(least_delay),
                           dice());
    ticket_ = 0;
}

void RedisStore::connected() noexcept
{
    if (ticket_ != 0) {
        probe();
    }

    while (!ngx_queue_empty(&backlog_)) {
        auto *call = static_cast<Call *>(ngx_queue_head(&backlog_));

        ngx_queue_remove(static_cast<ngx_queue_t *>(call));

        if (!send(call)) {
            ngx_queue_insert_head(&backlog_, static_cast<ngx_queue_t *>(call));
            return;
        }

        backlog_count_--;
        ngx_add_timer(&call->timer, settings_.timeout);
    }
}

/* The answer has come, but nobody waits for it any more. */
void RedisStore::take_back_counted(const Provisional &provisional,
                                   const Answer &answer) noexcept
{
    ScriptArgs counted = provisional.args.only([&](size_t i) {
        return answer.states[provisional.index[i]].is_counted;
    });

    counted.time_us = answer.time_us;
    take_back(counted);
}

/*
 * The answer was lost: nobody knows whether it was counted. In a log that can
 * be taken back all the same; without the time a bucket cannot be found.
 */
void RedisStore::take_back_uncertain(const Provisional &provisional) noexcept
{
    ScriptArgs uncertain = provisional.args.only(
        [&](size_t i) { return provisional.args.limits[i].buckets == 0; });

    uncertain.time_us = 0;
    take_back(uncertain);
}

/* Writes the EVALSHA; lua/sliding_window.lua says what it is made of. */
RedisStore::Call *RedisStore::new_call(const ScriptArgs &args) noexcept
{
    constexpr size_t kPerLimit = 5;
    constexpr size_t kMaxArgs = 5 + (1 + kPerLimit) * kMaxLimits;

    const char *argv[kMaxArgs];
    size_t argvlen[kMaxArgs];
    int argc = 0;

    auto add = [&](std::string_view arg) {
        argv[argc] = arg.data();
        argvlen[argc++] = arg.size();
    };

    struct Numbers {
        u_char text[kMaxArgs][NGX_INT64_LEN];
        size_t count;
    } numbers;

    numbers.count = 0;

    auto add_number = [&](int64_t n) {
        u_char *text = numbers.text[numbers.count++];

        add({reinterpret_cast<char *>(text),
             static_cast<size_t>(ngx_sprintf(text, "%L", n) - text)});
    };

    add("EVALSHA");
    add(script_sha());
    add_number(static_cast<int64_t>(args.count));

    for (size_t i = 0; i < args.count; i++) {
        add(args.limits[i].key.view());
    }

    if (args.time_us == kAsk) {
        add("");
    } else {
        add_number(args.time_us);
    }

    add(args.id);

    for (size_t i = 0; i < args.count; i++) {
        const ScriptLimit &limit = args.limits[i];

        add_number(limit.window_us);
        add_number(limit.max);
        add_number(limit.cost);
        add_number(limit.buckets);
        add(limit.rule);
    }

    auto *call = new (std::nothrow) Call();

    if (call == nullptr) {
        return nullptr;
    }

    call->store = this;

    call->size = static_cast<int>(
        redisFormatCommandArgv(&call->command, argc, argv, argvlen));

    if (call->size < 0) {
        call->command = nullptr;
        delete call;
        return nullptr;
    }

    call->on_reply = on_reply;
    call->timer.handler = on_timeout;
    call->timer.data = call;
    call->timer.log = ngx_cycle->log;

    return call;
}

bool RedisStore::send(Call *call) noexcept
{
    if (!connection_.send(call, call->command, static_cast<size_t>(call->size)))
    {
        return false;
    }

    ngx_queue_insert_tail(&calls_, static_cast<ngx_queue_t *>(call));
    call_count_++;

    return true;
}

void RedisStore::on_reply(RedisCommand *command, redisReply *reply) noexcept
{
    auto *call = static_cast<Call *>(command);
    RedisStore *store = call->store;

    ngx_queue_remove(static_cast<ngx_queue_t *>(call));
    store->call_count_--;

    if (reply != nullptr && reply->type == REDIS_REPLY_ERROR
        && classify_redis_error(text_of(reply)) == RedisError::kNoScript
        && store->retry_with_script(call))
    {
        return;
    }

    if (call->is_repeatable && has_failed(reply)) {
        call->stop_timer();
        store->postpone(call);

        if (reply != nullptr) {
            store->report_error(text_of(reply));
        }

        return;
    }

    if (reply != nullptr && reply->type != REDIS_REPLY_ERROR && !call->is_late)
    {
        store->breaker().succeeded(now_ms());
    }

    store->settle(call, reply);
    delete call;
}

/*
 * Redis has restarted, failed over or been told to forget its scripts. The
 * call has not run, so asking again counts it once; also if its asker is gone.
 */
bool RedisStore::retry_with_script(Call *call) noexcept
{
    if (call->retried) {
        return false;
    }

    call->retried = true;

    return connection_.send_script() && send(call);
}

void RedisStore::settle(Call *call, const redisReply *reply) noexcept
{
    Answer answer;
    answer.known = false;

    if (reply == nullptr) {
        /* the connection has said why it broke */
        call->reply(answer);

        if (call->provisional != nullptr) {
            take_back_uncertain(*call->provisional);
        }

        return;
    }

    if (reply->type == REDIS_REPLY_ERROR) {
        call->reply(answer);
        report_error(text_of(reply));
        return;
    }

    if (call->limits == 0) {
        return;
    }

    answer.known = read_reply(reply, call->limits, &answer);

    if (answer.known && call->receiver == nullptr
        && call->provisional != nullptr) {
        take_back_counted(*call->provisional, answer);
    }

    call->reply(answer);

    if (!answer.known) {
        connection_.fail(Trouble::kUnreachable,
                         "its answer is not what the script returns");
    }
}

void RedisStore::report_error(std::string_view error) noexcept
{
    switch (classify_redis_error(error)) {
    case RedisError::kUnavailable:
        connection_.fail(Trouble::kUnavailable, error);
        break;

    case RedisError::kForbidden:
        connection_.fail(Trouble::kForbidden, error);
        break;

    case RedisError::kNoScript:
    case RedisError::kThisCall:
        complain(error);
        break;
    }
}

void RedisStore::on_timeout(ngx_event_t *ev) noexcept
{
    auto *call = static_cast<Call *>(ev->data);
    RedisStore *store = call->store;

    /* the reply may be there, if the worker had no time to read it */
    store->expiring_ = call;
    store->connection_.read_waiting_input();

    if (store->expiring_ != call) {
        return;
    }

    store->expiring_ = nullptr;

    call->is_late = true;
    call->late_since = ngx_current_msec;

    Answer answer;
    answer.known = false;
    call->reply(answer);

    bool has_opened = store->breaker().failed(now_ms(), dice());

    /* frees the call, perhaps */
    if (store->drop_if_stalled()) {
        return;
    }

    if (has_opened) {
        store->breaker().is_news(static_cast<uint32_t>(Trouble::kUnreachable));
        store->log_down(Trouble::kUnreachable, "no replies within the timeout");
        store->recover_soon();

    } else if (!store->breaker().is_open()) {
        store->complain("no reply within the timeout");
    }
}

/*
 * Replies come in order: if the oldest call is overdue by another timeout,
 * Redis hangs or the connection is dead, and waiting on it is over.
 *
 * Counted from when the timeout was noticed, not from when the call was sent:
 * after a worker has been held up (a slow disk, a busy machine) all its calls
 * look old before it has had a chance to read the replies.
 */
bool RedisStore::is_stalled() const noexcept
{
    if (ngx_queue_empty(&calls_)) {
        return false;
    }

    auto *oldest = static_cast<const Call *>(ngx_queue_head(&calls_));

    return oldest->is_late
           && ngx_current_msec - oldest->late_since >= settings_.timeout;
}

bool RedisStore::drop_if_stalled() noexcept
{
    if (is_stalled()) {
        connection_.read_waiting_input();
    }

    if (!is_stalled()) {
        return false;
    }

    connection_.fail(Trouble::kUnreachable, "it does not reply");
    return true;
}

/* For failures that say nothing about the next check: a line now and then. */
void RedisStore::complain(std::string_view what) noexcept
{
    silent_failures_++;

    if (complained_at_ != 0
        && ngx_current_msec - complained_at_ < kComplainEveryMs) {
        return;
    }

    ngx_str_t why = str(what);

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "sliding_limit: redis \"%V\": %ui check(s) failed, "
                  "the last one because: %V",
                  &settings_.name, silent_failures_, &why);

    silent_failures_ = 0;
    complained_at_ = ngx_current_msec;
}

}  // namespace sl
