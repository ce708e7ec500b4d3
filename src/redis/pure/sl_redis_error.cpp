#include "redis/pure/sl_redis_error.h"

namespace sl {

RedisError classify_redis_error(std::string_view message) noexcept
{
    struct Known {
        std::string_view prefix;
        RedisError kind;
    };

    static constexpr Known kKnown[] = {
        {"NOSCRIPT", RedisError::kNoScript},
        {"MOVED", RedisError::kElsewhere},
        {"ASK", RedisError::kElsewhere},
        {"TRYAGAIN", RedisError::kElsewhere},
        {"CROSSSLOT", RedisError::kCrossSlot},
        {"LOADING", RedisError::kUnavailable},
        {"OOM", RedisError::kUnavailable},
        {"READONLY", RedisError::kUnavailable},
        {"BUSY", RedisError::kUnavailable},
        {"MISCONF", RedisError::kUnavailable},
        {"NOREPLICAS", RedisError::kUnavailable},
        {"MASTERDOWN", RedisError::kUnavailable},
        {"CLUSTERDOWN", RedisError::kUnavailable},
        {"NOAUTH", RedisError::kForbidden},
        {"WRONGPASS", RedisError::kForbidden},
        {"NOPERM", RedisError::kForbidden},
    };

    std::string_view word = message.substr(0, message.find(' '));

    for (const Known &known : kKnown) {
        if (word == known.prefix) {
            return known.kind;
        }
    }

    return RedisError::kThisCall;
}

}  // namespace sl
