/* Clocks that are the same in all processes. */

#pragma once

#include <time.h>

#include <cstdint>

namespace sl {

/* One that nobody sets. */
inline int64_t monotonic_us() noexcept
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);

    return int64_t{now.tv_sec} * 1000000 + now.tv_nsec / 1000;
}

/* The time since 1970, now rather than as of this turn of the event loop. */
inline uint64_t wall_clock_us() noexcept
{
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);

    return static_cast<uint64_t>(now.tv_sec) * 1000000
           + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

}  // namespace sl
