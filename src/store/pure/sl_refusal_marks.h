/*
 * Until when refusals are remembered, for each zone: after that nobody need
 * look for one, which takes a lock.
 *
 * In memory that all processes share, and that is all zero to begin with. A
 * zone's mark is found by a hash of its name. Zones that share one cost each
 * other a needless look, or a refusal that is forgotten, and nothing else.
 *
 * When an operator has changed something in a zone, all that its store was
 * asked before is void, also what it has not answered yet.
 */

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sl {

class RefusalMarks {
  public:
    static constexpr size_t kCount = 256;

    /* Which one belongs to the zone. */
    static size_t place_of(std::string_view zone) noexcept;

    /* A refusal is remembered until then, by a clock that processes share. */
    void refused_until(size_t place, int64_t us) noexcept;

    bool may_have_refused(size_t place, int64_t now_us) const noexcept
    {
        return now_us < until_us_[place].load(std::memory_order_relaxed);
    }

    /* What was asked up to this moment, by the same clock, is void. */
    void forget_until(size_t place, int64_t us) noexcept;

    int64_t void_until(size_t place) const noexcept
    {
        return void_until_us_[place].load(std::memory_order_acquire);
    }

  private:
    std::atomic<int64_t> until_us_[kCount];
    std::atomic<int64_t> void_until_us_[kCount];
};

}  // namespace sl
