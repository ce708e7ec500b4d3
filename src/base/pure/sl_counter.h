/* A number that all processes add to, in shared memory. */

#pragma once

#include <atomic>
#include <cstdint>

namespace sl {

using Counter = std::atomic<uint64_t>;

inline void add(Counter &counter, uint64_t amount = 1) noexcept
{
    counter.fetch_add(amount, std::memory_order_relaxed);
}

}  // namespace sl
