/*
 * What an error reply of Redis means for the module. Redis promises only the
 * first word of an error to be stable, so only that is looked at; but that
 * scripts cannot be run has no word of its own.
 */

#pragma once

#include <string_view>

namespace sl {

enum class RedisError {
    /* The script is not there: load it and ask once more. */
    kNoScript,

    /* Another server of the cluster has the key, or will have it soon. */
    kElsewhere,

    /* The keys of the call are in different slots, and this server has slots:
     * several calls can do what this one cannot. */
    kCrossSlot,

    /* Redis cannot serve anyone now: leave it alone and try again soon. */
    kUnavailable,

    /* A wrong password or missing rights: only a person can mend that. */
    kForbidden,

    /* The server cannot run scripts at all: as above. */
    kNoScripting,

    /* Something is wrong with this one call; the next may do well. */
    kThisCall,
};

RedisError classify_redis_error(std::string_view message) noexcept;

}  // namespace sl
