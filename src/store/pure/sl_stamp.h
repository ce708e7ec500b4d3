/*
 * When counted requests leave a limit's window.
 *
 * Every entry of the embedded store bears a stamp, a time in microseconds that
 * is not 0: 0 is what has not been written. Where a limit counts single
 * requests, that is the request's time. Where it counts in buckets, it is when
 * the bucket ends; a bucket leaves the window as a whole.
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
    int64_t width = limit.buckets ? bucket_width(limit) : 0;

    return limit.buckets ? (time_us / width + 1) * width : time_us;
}

/* How long an entry stays in the window, from its stamp on. */
inline int64_t stays_for(const LimitQuery &limit) noexcept
{
    return limit.buckets ? limit.buckets * bucket_width(limit)
                         : limit.window_us;
}

/* When an entry with this stamp leaves the window. */
inline int64_t leaves_at(const LimitQuery &limit, int64_t stamp) noexcept
{
    return stamp + stays_for(limit);
}

/* The latest stamp whose entries have left the window by now. */
inline int64_t last_expired(const LimitQuery &limit, int64_t now_us) noexcept
{
    return now_us - stays_for(limit);
}

/* No entry stays in the window for longer than this. */
inline int64_t longest_wait(const LimitQuery &limit) noexcept
{
    return limit.buckets ? (limit.buckets + 1) * bucket_width(limit)
                         : limit.window_us;
}

}  // namespace sl
