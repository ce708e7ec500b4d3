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
    : settings_(settings), connection_(settings, *this), calls_(),
      call_count_(0), backlog_(), backlog_count_(0), expiring_(nullptr),
      silent_failures_(0), complained_at_(0)
{
    ngx_queue_init(&calls_);
    ngx_queue_init(&backlog_);
}

void RedisStore::start() noexcept
{
    connection_.open();
}

void RedisStore::stop() noexcept
{
    connection_.close();

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

void RedisStore::connected() noexcept
{
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
        connection_.fail(RedisConnection::Trouble::kUnreachable,
                         "its answer is not what the script returns");
    }
}

void RedisStore::report_error(std::string_view error) noexcept
{
    switch (classify_redis_error(error)) {
    case RedisError::kUnavailable:
        connection_.fail(RedisConnection::Trouble::kUnavailable, error);
        break;

    case RedisError::kForbidden:
        connection_.fail(RedisConnection::Trouble::kForbidden, error);
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

    /* frees the call, perhaps */
    if (!store->drop_if_stalled()) {
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

    connection_.fail(RedisConnection::Trouble::kUnreachable,
                     "it does not reply");
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
