/*
 * Names of the sorted sets in Redis: PREFIX:ZONE:KEY.
 *
 * KEY comes from the client and may be anything. Two different sets of prefix,
 * zone and key never share a name, whatever bytes they are made of:
 *
 *   - neither a prefix nor a zone's name has a ':' (configuration sees to
 *     that), so the second ':' is where the zone ends, however many the key
 *     contains;
 *   - the key stands there as readable_key() has it: an ordinary one as it is,
 *     readable in redis-cli, and any other one hashed. Those with braces are
 *     among the latter because a Redis Cluster takes what stands between the
 *     first two for the slot.
 *
 * On a cluster KEY stands in braces: all limits of one client are then in one
 * slot, and can be decided about in one call.
 */

#pragma once

#include <cstddef>
#include <string_view>

#include "base/pure/sl_readable_key.h"
#include "store/pure/sl_zone_name.h"

namespace sl {

constexpr std::string_view kDefaultKeyPrefix = "rate_limit";
constexpr size_t kMaxKeyPrefix = 64;

struct RedisKey {
    char data[kMaxKeyPrefix + 1 + kMaxZoneName + 3 + kMaxReadableKey];
    size_t size;

    std::string_view view() const noexcept { return {data, size}; }
};

/*
 * What holds for a zone's name holds for a prefix: a brace would choose the
 * slot in a cluster, a ':' would look like the end of the prefix, and a '*' or
 * '?' would mean something else in an ACL.
 */
bool is_key_prefix(std::string_view text) noexcept;

enum class KeyStyle { kPlain, kInBraces };

/* `prefix` must be a key prefix and `zone` a zone name, or empty. */
RedisKey redis_key(std::string_view prefix, std::string_view zone,
                   std::string_view key, KeyStyle style) noexcept;

}  // namespace sl
