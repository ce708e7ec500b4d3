/*
 * Where a client stands in a zone, for an operator to see: what is counted, and
 * what was ruled. All times are relative to the store's now, so that nobody has
 * to know its clock.
 */

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/pure/sl_uuid.h"
#include "store/pure/sl_ruling.h"

namespace sl {

/* A counted request with all of its units that are left; where counts are kept
 * in buckets, one of these. */
struct CountedRequest {
    /* When it was counted, or when the bucket began. */
    int64_t ago_us;

    int64_t cost;

    /* Empty where the store has no ids. */
    char id[kUuidSize];
    uint8_t id_size;

    std::string_view id_text() const noexcept { return {id, id_size}; }
};

struct Standing {
    static constexpr size_t kMostShown = 100;

    /* Used in the window. */
    int64_t used;

    /* Until something leaves the window; kNoWait: there is nothing in it. */
    int64_t wait_us;

    /* 0: it is not banned. */
    int64_t ban_left_us;

    /* kOwnMax: that of its limits. */
    int64_t max;
    int64_t max_left_us;

    /* How many units are counted, or how many buckets there are; and requests
     * or buckets, the newest of them first. */
    int64_t entries;
    size_t shown;
    CountedRequest requests[kMostShown];
};

/* A client about whom something was ruled. */
struct RuledClient {
    /* Its key as readable_key() has it. */
    std::string_view key;

    int64_t ban_left_us;
    int64_t max;
    int64_t max_left_us;
};

}  // namespace sl
