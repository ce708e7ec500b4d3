/* A clock that nobody sets, and that is the same in all processes. */

#pragma once

#include <time.h>

#include <cstdint>

namespace sl {

inline int64_t monotonic_us() noexcept
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);

    return int64_t{now.tv_sec} * 1000000 + now.tv_nsec / 1000;
}

}  // namespace sl
