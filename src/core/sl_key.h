/*
 * Names of the sorted sets in Redis: rate_limit:ZONE:KEY.
 *
 * KEY comes from the client and may be anything. Two different pairs of zone
 * and key never share a name, whatever bytes they are made of:
 *
 *   - a zone's name has no ':' (configuration sees to that), so the second
 *     ':' is where the zone ends, however many the key contains;
 *   - an ordinary key stands there as it is, readable in redis-cli;
 *   - any other key (long, control characters, braces, a leading '#') stands
 *     there as '#' and its SHA-256. Braces are among them because a Redis
 *     Cluster takes what stands between the first two for the slot.
 *
 * On a cluster KEY stands in braces: all limits of one client are then in one
 * slot, and can be decided about in one call.
 */

#pragma once

#include <cstddef>
#include <string_view>

namespace sl {

constexpr std::string_view kRedisKeyPrefix = "rate_limit:";
constexpr size_t kMaxZoneName = 64;
constexpr size_t kMaxReadableKey = 128;

struct RedisKey {
    char data[kRedisKeyPrefix.size() + kMaxZoneName + 3 + kMaxReadableKey];
    size_t size;

    std::string_view view() const noexcept { return {data, size}; }
};

/* [A-Za-z0-9_.-]{1,64} */
bool is_zone_name(std::string_view name) noexcept;

enum class KeyStyle { kPlain, kInBraces };

/* `zone` must be a zone name. */
RedisKey redis_key(std::string_view zone, std::string_view key,
                   KeyStyle style) noexcept;

}  // namespace sl
