/*
 * How long to wait before the next attempt at something that keeps failing:
 * twice as long each time, up to a ceiling, and jittered so that many workers
 * and servers which lost the same Redis do not come back in step.
 */

#pragma once

#include <cstdint>

namespace sl {

class Backoff {
  public:
    Backoff(uint32_t first_ms, uint32_t most_ms) noexcept
        : first_ms_(first_ms), most_ms_(most_ms), next_ms_(first_ms)
    {}

    /* A delay in [d/2, d], where d doubles from call to call. */
    uint32_t next(uint32_t random) noexcept
    {
        uint32_t d = next_ms_;
        next_ms_ = d > most_ms_ / 2 ? most_ms_ : d * 2;

        return d - random % (d / 2 + 1);
    }

    void reset() noexcept { next_ms_ = first_ms_; }

  private:
    uint32_t first_ms_;
    uint32_t most_ms_;
    uint32_t next_ms_;
};

}  // namespace sl
