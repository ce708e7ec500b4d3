#include "sl_redis_store.h"

#include <new>

#include "../core/sl_key.h"
#include "../core/sl_redis_error.h"
#include "sl_redis_script.h"

namespace sl {

namespace {

/*
 * hiredis's queue has no bound of its own. Redis answers this many in about
 * 100 ms: whatever came on top would only time out.
 */
constexpr ngx_uint_t kMaxCalls = 10000;

/* Failures that do not take the store down are logged this often at most. */
constexpr ngx_msec_t kComplainEveryMs = 10000;

bool read_reply(const redisReply *reply, LimitState *states, size_t limits)
{
    int64_t numbers[kMaxLimits * kNumbersPerLimit];

    if (reply->type != REDIS_REPLY_ARRAY
        || reply->elements != limits * kNumbersPerLimit)
    {
        return false;
    }

    for (size_t i = 0; i < reply->elements; i++) {
        if (reply->element[i]->type != REDIS_REPLY_INTEGER) {
            return false;
        }

        numbers[i] = reply->element[i]->integer;
    }

    return read_states(numbers, reply->elements, states, limits);
}

}  // namespace

/*
 * A question on its way. The store owns it until the reply has come or the
 * connection broke, which may be long after its asker gave up or went away.
 */
struct RedisStore::Call final : RedisCommand, PendingQuestion, ngx_queue_t {
    RedisStore *store;

    /* nullptr once answered, timed out or abandoned. */
    AnswerReceiver *receiver;

    ngx_event_t timer;
    size_t limits;

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
    void abandon() noexcept override { receiver = nullptr; }

    void stop_timer() noexcept
    {
        if (timer.timer_set) {
            ngx_del_timer(&timer);
        }
    }
};

RedisStore::RedisStore(const RedisSettings &settings) noexcept
    : settings_(settings), connection_(settings), calls_(), call_count_(0),
      expiring_(nullptr), silent_failures_(0), complained_at_(0)
{
    ngx_queue_init(&calls_);
}

void RedisStore::start() noexcept
{
    connection_.open();
}

void RedisStore::stop() noexcept
{
    connection_.close();
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

    Call *call = new_call(query);

    if (call == nullptr) {
        complain("out of memory");
        return nullptr;
    }

    if (!send(call)) {
        delete call;
        complain("cannot send");
        return nullptr;
    }

    call->receiver = &receiver;
    ngx_add_timer(&call->timer, settings_.timeout);

    return call;
}

/* Writes the EVALSHA; lua/sliding_window.lua says what it is made of. */
RedisStore::Call *RedisStore::new_call(const Query &query) noexcept
{
    constexpr size_t kMaxArgs = 4 + 3 * kMaxLimits;

    const char *argv[kMaxArgs];
    size_t argvlen[kMaxArgs];
    int argc = 0;

    auto add = [&](std::string_view arg) {
        argv[argc] = arg.data();
        argvlen[argc++] = arg.size();
    };

    struct Numbers {
        u_char text[2 * kMaxLimits + 1][NGX_INT64_LEN];
        size_t count;
    } numbers;

    numbers.count = 0;

    auto add_number = [&](int64_t n) {
        u_char *text = numbers.text[numbers.count++];

        add({reinterpret_cast<char *>(text),
             static_cast<size_t>(ngx_sprintf(text, "%L", n) - text)});
    };

    RedisKey keys[kMaxLimits];

    add("EVALSHA");
    add(script_sha());
    add_number(static_cast<int64_t>(query.count));

    for (size_t i = 0; i < query.count; i++) {
        keys[i] = redis_key(query.limits[i].zone, query.limits[i].key);
        add(keys[i].view());
    }

    add(query.id);

    for (size_t i = 0; i < query.count; i++) {
        add_number(query.limits[i].window_us);
        add_number(query.limits[i].max);
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
    call->limits = query.count;
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
        return;
    }

    if (reply->type == REDIS_REPLY_ERROR) {
        call->reply(answer);
        report_error(text_of(reply));
        return;
    }

    answer.known = read_reply(reply, answer.states, call->limits);
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
