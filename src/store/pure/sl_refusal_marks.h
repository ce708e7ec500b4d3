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

#include "store/pure/sl_limit_query.h"
#include "store/pure/sl_limit_state.h"

namespace sl {

class RefusalMarks {
  public:
    static constexpr size_t kCount = 256;

    /* Which one belongs to the zone. */
    static size_t place_of(std::string_view zone) noexcept;

    /* A refusal is remembered until then, by a clock that processes share. */
    void refused_until(size_t place, int64_t us) noexcept;

    /*
     * This one, asked for at `asked_us`. A ban may last for days, and must not
     * have all clients of the zone looked for in the meantime: where its client
     * does not come for as long as any other refusal can last, it is not looked
     * for, and the store is asked again.
     */
    void refused(const LimitQuery &limit, const LimitState &state,
                 int64_t asked_us) noexcept;

    bool may_have_refused(size_t place, int64_t now_us) const noexcept
    {
        return now_us < until_us_[place].load(std::memory_order_relaxed);
    }

    /* What was asked up to this moment, by the same clock, is void. So there is
     * nothing to look for: a ban that is lifted may have been a long one. */
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
