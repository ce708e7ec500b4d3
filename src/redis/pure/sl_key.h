/*
 * Names of what is counted in Redis: PREFIX:ZONE:KEY for a log,
 * PREFIX:ZONE!FORMAT:KEY for what is kept otherwise. So a zone whose algorithm
 * is changed begins anew: nothing has to be read that was written for the other
 * one. FORMAT is
 *
 *   p         a packed log
 *   6x60000   so many buckets, of a window of so many milliseconds
 *
 * KEY comes from the client and may be anything. Two that differ in prefix,
 * zone, format or key never share a name, whatever bytes they are made of:
 *
 *   - neither a prefix nor a zone's name has a ':' or a '!' (configuration sees
 *     to that), so the second ':' is where the key begins, however many it
 *     contains, and what stands behind a '!' before it is the format;
 *   - the key stands there as readable_key() has it: an ordinary one as it is,
 *     readable in redis-cli, and any other one hashed. Those with braces are
 *     among the latter because a Redis Cluster takes what stands between the
 *     first two for the slot.
 *
 * On a cluster KEY stands in braces: all limits of one client are then in one
 * slot, and can be decided about in one call.
 *
 * A client about whom something was ruled has a second name, by which it is
 * found: PREFIX:ZONE!:{TAG}. No format is empty, so this is the name of nothing
 * else. TAG is what decides about the slot of the first name, so that both are
 * in one slot, also behind a proxy: on a cluster KEY, elsewhere all of that
 * name.
 */

#pragma once

#include <cstddef>
#include <string_view>

#include "base/pure/sl_number.h"
#include "base/pure/sl_readable_key.h"
#include "store/pure/sl_limit_query.h"
#include "store/pure/sl_zone_name.h"

namespace sl {

constexpr std::string_view kDefaultKeyPrefix = "rate_limit";
constexpr size_t kMaxKeyPrefix = 64;

/* FORMAT; empty: a log. */
class KeyFormat {
  public:
    static constexpr size_t kMaxSize = 2 * kMaxDigits + 1;

    KeyFormat() noexcept : data_(), size_(0) {}

    KeyFormat(Algorithm algorithm, unsigned buckets,
              int64_t window_us) noexcept;

    std::string_view view() const noexcept { return {data_, size_}; }

  private:
    char data_[kMaxSize];
    size_t size_;
};

struct RedisKey {
    char data[kMaxKeyPrefix + 1 + kMaxZoneName + 1 + KeyFormat::kMaxSize + 3
              + kMaxReadableKey];
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
                   std::string_view key, KeyStyle style,
                   const KeyFormat &format = KeyFormat()) noexcept;

struct IndexKey {
    char data[kMaxKeyPrefix + 1 + kMaxZoneName + 4 + sizeof(RedisKey::data)];
    size_t size;

    std::string_view view() const noexcept { return {data, size}; }
};

/* The name by which the client that is counted there is found. */
IndexKey index_key(std::string_view prefix, std::string_view zone,
                   const RedisKey &of, KeyStyle style) noexcept;

/* What all such names of a zone begin with, and a '*': for SCAN. Nothing in it
 * has to be escaped. */
IndexKey index_pattern(std::string_view prefix, std::string_view zone) noexcept;

/* The readable key of the client that is found by this name, in whatever format
 * it is counted; empty: it is no such name in this zone. */
std::string_view client_of_index(std::string_view name, std::string_view prefix,
                                 std::string_view zone,
                                 KeyStyle style) noexcept;

}  // namespace sl
