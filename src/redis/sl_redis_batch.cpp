#include "redis/sl_redis_batch.h"

#include "redis/sl_redis_script.h"

namespace sl {

RedisBatch::RedisBatch(CallCarrier &carrier, const CallGroup &group) noexcept
    : RedisCommand{on_reply_to_all}, carrier_(carrier), calls_(),
      count_(group.count)
{
    for (size_t i = 0; i < count_; i++) {
        calls_[i] = group.calls[i].get();
    }
}

std::string_view RedisBatch::write(char (&text)[kMaxSize]) const noexcept
{
    size_t limits = calls_[0]->limits();
    size_t ids = calls_[0]->id().empty() ? 0 : count_;
    CommandWriter command(text, 3 + count_ * limits
                                    + ScriptText::shared_words(limits) + ids);

    command.add("EVALSHA");
    command.add(script_sha());
    command.add(static_cast<int64_t>(count_ * limits));

    for (size_t i = 0; i < count_; i++) {
        command.add_raw(calls_[i]->keys());
    }

    command.add_raw(calls_[0]->shared());

    for (size_t i = 0; i < count_; i++) {
        command.add_raw(calls_[i]->id());
    }

    return {text, command.size()};
}

void RedisBatch::on_reply_to_all(RedisCommand *self, redisReply *reply) noexcept
{
    std::unique_ptr<RedisBatch> batch(static_cast<RedisBatch *>(self));

    batch->carrier_.replied(batch->calls_, batch->count_, reply);
}

CallGroup CallCollector::next_group() noexcept
{
    CallGroup group;
    RedisCall *call = calls_.first();

    if (call == nullptr) {
        return group;
    }

    size_t most = CallGroup::most_about(call->limits());

    do {
        RedisCall *next = next_alike(*call);

        group.add(calls_.take(*call));
        call = next;
    } while (call != nullptr && group.count < most);

    return group;
}

/* The next one that has the same limits; nullptr: there is none. */
RedisCall *CallCollector::next_alike(const RedisCall &call) const noexcept
{
    RedisCall *next = calls_.next(call);

    while (next != nullptr && !next->is_like(call)) {
        next = calls_.next(*next);
    }

    return next;
}

}  // namespace sl
