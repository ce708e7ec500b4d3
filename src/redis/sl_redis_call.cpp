#include "redis/sl_redis_call.h"

#include <algorithm>
#include <new>

namespace sl {

std::unique_ptr<Provisional> Provisional::of(const Query &query,
                                             const ScriptArgs &all) noexcept
{
    auto is_kept = [](const LimitQuery &limit) {
        return limit.provisional || limit.is_settled_later;
    };
    auto count = static_cast<size_t>(
        std::count_if(query.limits, query.limits + query.count, is_kept));

    if (count == 0) {
        return nullptr;
    }

    std::unique_ptr<Provisional> p(new (std::nothrow) Provisional());

    if (p != nullptr) {
        p->kept_.reset(new (std::nothrow) Kept[count]);
    }

    if (p == nullptr || p->kept_ == nullptr) {
        return nullptr;
    }

    for (size_t i = 0; i < query.count; i++) {
        if (is_kept(query.limits[i])) {
            p->kept_[p->count_++] =
                Kept{all.limits[i], i, !query.limits[i].provisional};
        }
    }

    p->slot_ = all.slot;
    p->id_size_ = query.id.copy(p->id_, sizeof(p->id_));

    return p;
}

void Provisional::keep_provisional() noexcept
{
    auto *end =
        std::remove_if(kept_.get(), kept_.get() + count_,
                       [](const Kept &kept) { return !kept.if_abandoned; });

    count_ = static_cast<size_t>(end - kept_.get());
}

/* The id is that of this object. */
template <typename Predicate>
ScriptArgs Provisional::args_of(bool is_abandoned, int64_t time_us,
                                Predicate is_counted) const noexcept
{
    ScriptArgs args;

    args.id = {id_, id_size_};
    args.slot = slot_;
    args.settle(time_us);

    for (size_t i = 0; i < count_; i++) {
        const Kept &kept = kept_[i];

        if ((is_abandoned || !kept.if_abandoned) && is_counted(kept.index)) {
            args.limits[args.count++] = kept.limit;
        }
    }

    return args;
}

ScriptArgs Provisional::counted_in(const Answer &answer,
                                   bool is_abandoned) const noexcept
{
    return args_of(is_abandoned, answer.time_us, [&](size_t index) {
        return answer.states[index].is_counted;
    });
}

ScriptArgs Provisional::uncertain(bool is_abandoned) const noexcept
{
    return args_of(is_abandoned, Store::kUncertain,
                   [](size_t) { return true; });
}

/* ---- a call ---- */

namespace {

/* Each unit is an entry of a log: together, requests that take many of them
 * would hold up Redis. */
bool take_few_units(const ScriptArgs &args)
{
    constexpr int64_t kMostUnits = 64;

    return args.task == ScriptArgs::Task::kCheck
           && std::all_of(args.limits, args.limits + args.count,
                          [](const ScriptLimit &limit) {
                              return limit.algorithm != Algorithm::kLog
                                     || limit.cost <= kMostUnits;
                          });
}

}  // namespace

CallPtr RedisCall::create(Kind kind, const ScriptArgs &args,
                          AnswerReceiver *receiver) noexcept
{
    char room[ScriptText::kMaxSize];
    ScriptText text(args, room);
    CallPtr call = create(kind, args.count, args.slot, receiver, text.all());

    if (call != nullptr) {
        call->keys_ = text.keys().of(call->command_);
        call->shared_ = text.shared().of(call->command_);
        call->id_ = text.id().of(call->command_);
        call->may_be_joined_ = take_few_units(args);
    }

    return call;
}

CallPtr RedisCall::create_errand(std::string_view command, unsigned slot,
                                 ErrandReceiver &receiver) noexcept
{
    return create(Kind::kErrand, 0, slot, &receiver, command);
}

CallPtr RedisCall::create(Kind kind, size_t limits, unsigned slot,
                          AnswerReceiver *receiver,
                          std::string_view command) noexcept
{
    void *memory =
        ::operator new(sizeof(RedisCall) + command.size(), std::nothrow);

    if (memory == nullptr) {
        return nullptr;
    }

    CallPtr call(new (memory) RedisCall(kind, limits, slot, receiver));
    char *text = reinterpret_cast<char *>(call.get() + 1);

    call->command_ = {text, command.copy(text, command.size())};

    return call;
}

RedisCall::RedisCall(Kind kind, size_t limits, unsigned slot,
                     AnswerReceiver *receiver) noexcept
    : RedisCommand{on_reply_to_it}, ngx_queue_t(), kind_(kind), limits_(limits),
      slot_(slot), may_be_joined_(false), receiver_(receiver), outdated_at_(0),
      carrier_(nullptr), waited_(0),
      timer_(Wakeup::calling<&RedisCall::end_time>(this, Wakeup::kNeeded)),
      is_late_(false), late_since_(0), watch_(nullptr), is_abandoned_(false),
      is_retried_(false), needs_asking_(false), redirects_(0)
{}

RedisCall::~RedisCall()
{
    if (watch_ != nullptr) {
        watch_->end();
    }
}

void RedisCall::operator delete(void *memory) noexcept
{
    ::operator delete(memory);
}

void RedisCall::reply(const Answer &answer) noexcept
{
    AnswerReceiver *to = std::exchange(receiver_, nullptr);

    timer_.cancel();

    if (to != nullptr) {
        to->receive(answer);
    }
}

ErrandReceiver *RedisCall::end_errand() noexcept
{
    timer_.cancel();

    return static_cast<ErrandReceiver *>(std::exchange(receiver_, nullptr));
}

void RedisCall::abandon(bool keep_provisional) noexcept
{
    receiver_ = nullptr;
    is_abandoned_ = true;

    if (keep_provisional && provisional_ != nullptr) {
        provisional_->keep_provisional();
    }
}

void RedisCall::set_out(CallCarrier &carrier, ngx_msec_t timeout) noexcept
{
    carrier_ = &carrier;

    if (!timer_.is_set()) {
        timer_.after(timeout - ngx_min(waited_, timeout));
    }
}

/*
 * If the time of whoever waits is up, that of Redis may not be: a server is not
 * blamed for a request that has spent its time elsewhere.
 */
void RedisCall::end_time() noexcept
{
    ngx_msec_t rest = std::exchange(waited_, 0);

    if (rest == 0) {
        carrier_->timed_out(*this);
        return;
    }

    timer_.after(rest);

    /* frees the call, perhaps */
    if (AnswerReceiver *to = std::exchange(receiver_, nullptr)) {
        to->receive(Answer::none(StoreError::kTimeout));
    }
}

void RedisCall::set_late() noexcept
{
    is_late_ = true;
    late_since_ = ngx_current_msec;
}

void RedisCall::start_over() noexcept
{
    timer_.cancel();
    is_late_ = false;
    is_retried_ = false;

    if (watch_ != nullptr) {
        watch_->end();
    }
}

void RedisCall::on_reply_to_it(RedisCommand *self, redisReply *reply) noexcept
{
    auto *call = static_cast<RedisCall *>(self);

    call->carrier_->replied(&call, 1, reply);
}

/* ---- several ---- */

CallQueue::~CallQueue()
{
    while (!is_empty()) {
        pop();
    }
}

void CallQueue::push(CallPtr call) noexcept
{
    ngx_queue_t *place = call.release();

    ngx_queue_insert_tail(&head_, place);
    size_++;
}

CallPtr CallQueue::pop() noexcept
{
    RedisCall *call = first();

    return call != nullptr ? take(*call) : nullptr;
}

CallPtr CallQueue::take(RedisCall &call) noexcept
{
    ngx_queue_t *place = &call;

    ngx_queue_remove(place);
    size_--;

    return CallPtr(&call);
}

RedisCall *CallQueue::first() const noexcept
{
    return call_at(ngx_queue_head(&head_));
}

RedisCall *CallQueue::next(const RedisCall &call) const noexcept
{
    return call_at(ngx_queue_next(static_cast<const ngx_queue_t *>(&call)));
}

RedisCall *CallQueue::call_at(ngx_queue_t *place) const noexcept
{
    return place != ngx_queue_sentinel(&head_) ? static_cast<RedisCall *>(place)
                                               : nullptr;
}

}  // namespace sl
