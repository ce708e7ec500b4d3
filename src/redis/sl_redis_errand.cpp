#include "redis/sl_redis_errand.h"

namespace sl {

ErrandFailure ErrandFailure::no_reply(StoreError error) noexcept
{
    switch (error) {
    case StoreError::kTimeout:
        return ErrandFailure(error, "there was no reply within the timeout");

    case StoreError::kConnection:
        return ErrandFailure(error, "the connection broke before the reply");

    case StoreError::kUnavailable:
        return ErrandFailure(error, "the server that has it cannot be asked");

    default:
        return ErrandFailure(error);
    }
}

RedisCall *ErrandDesk::send(std::string_view command, unsigned slot,
                            ErrandReceiver &receiver,
                            ErrandFailure *failure) const noexcept
{
    RedisChannel *channel = routes_.channel_for(slot);

    if (channel == nullptr) {
        *failure = ErrandFailure(StoreError::kDown, "no server is known");
        return nullptr;
    }

    if (!channel->is_usable()) {
        *failure = why_away(*channel);
        return nullptr;
    }

    CallPtr call = RedisCall::create_errand(command, slot, receiver);

    if (call == nullptr) {
        *failure = ErrandFailure(StoreError::kMemory, "out of memory");
        return nullptr;
    }

    StoreError why_not;
    RedisCall *sent = channel->run(std::move(call), &why_not);

    if (sent == nullptr) {
        *failure = ErrandFailure(why_not, why_not == StoreError::kOverload
                                              ? "too many checks are waiting"
                                              : "it cannot be sent");
    }

    return sent;
}

/* What is known of the server by all workers, or else of this channel. */
ErrandFailure ErrandDesk::why_away(const RedisChannel &channel) const noexcept
{
    auto now = static_cast<int64_t>(ngx_current_msec);
    Outage outage;

    for (size_t place = 0; breakers_.next_outage(&place, now, &outage);) {
        if (outage.server() == channel.server()) {
            return ErrandFailure(StoreError::kDown, outage.reason());
        }
    }

    return ErrandFailure(StoreError::kDown, channel.reason());
}

}  // namespace sl
