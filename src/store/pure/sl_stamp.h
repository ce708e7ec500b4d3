/*
 * When counted requests leave a limit's window.
 *
 * Every entry of the embedded store bears a stamp. Where a limit counts single
 * requests, the stamp is the request's time in microseconds. Where it counts in
 * buckets, the stamp is the bucket's number, counted from 1 because 0 is what
 * has not been written; a bucket leaves the window as a whole.
 */

#pragma once

#include <cstdint>

#include "store/pure/sl_limit_query.h"

namespace sl {

/* How long one bucket lasts; all of them together last at least a window. */
inline int64_t bucket_width(const LimitQuery &limit) noexcept
{
    return (limit.window_us + limit.buckets - 1) / limit.buckets;
}

/* The stamp of a request that is counted at this time. */
inline int64_t stamp_of(const LimitQuery &limit, int64_t time_us) noexcept
{
    return limit.buckets ? time_us / bucket_width(limit) + 1 : time_us;
}

/* When an entry with this stamp leaves the window. */
inline int64_t leaves_at(const LimitQuery &limit, int64_t stamp) noexcept
{
    return limit.buckets ? (stamp + limit.buckets) * bucket_width(limit)
                         : stamp + limit.window_us;
}

/* The latest stamp whose entries have left the window by now. */
inline int64_t last_expired(const LimitQuery &limit, int64_t now_us) noexcept
{
    return limit.buckets ? now_us / bucket_width(limit) - limit.buckets
                         : now_us - limit.window_us;
}

/* No entry stays in the window for longer than this. */
inline int64_t longest_wait(const LimitQuery &limit) noexcept
{
    return limit.buckets ? (limit.buckets + 1) * bucket_width(limit)
                         : limit.window_us;
}

}  // namespace sl
