/*
 * Until when refusals are remembered, for each zone of a store: after that
 * nobody need look for one, which takes a lock.
 *
 * In memory that all processes share, and that is all zero to begin with. A
 * mark is a hash of the zone's name and of the store that counts for it: after
 * a reload that moves the zone to another store, workers of the old and of the
 * new configuration have different marks for it, and each see the refusals of
 * their own store only.
 *
 * There are fewer places here than marks. Marks that share a place cost each
 * other a needless look, or a refusal that is forgotten, and nothing else.
 *
 * When an operator has changed something in a zone, all that its store was
 * asked before is void, also what it has not answered yet. When a request is
 * taken back there, only what has not been answered yet is: what its store has
 * refused before holds without the request, too.
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

    /* `store` is a number that no two stores share; see Store::identity(). */
    static RefusalMark mark_of(std::string_view zone, uint64_t store) noexcept;

    /* Where the mark is kept. */
    static constexpr size_t place_of(RefusalMark mark) noexcept
    {
        return mark % kCount;
    }

    /* A refusal is remembered until then, by a clock that processes share. */
    void refused_until(RefusalMark mark, int64_t us) noexcept;

    /*
     * This one, asked for at `asked_us`. A ban may last for days, and must not
     * have all clients of the zone looked for in the meantime: where its client
     * does not come for as long as any other refusal can last, it is not looked
     * for, and the store is asked again.
     */
    void refused(const LimitQuery &limit, const LimitState &state,
                 int64_t asked_us) noexcept;

    bool may_have_refused(RefusalMark mark, int64_t now_us) const noexcept
    {
        return now_us
               < until_us_[place_of(mark)].load(std::memory_order_relaxed);
    }

    /* What was asked up to this moment, by the same clock, is void. So there is
     * nothing to look for: a ban that is lifted may have been a long one. */
    void forget_until(RefusalMark mark, int64_t us) noexcept;

    int64_t void_until(RefusalMark mark) const noexcept
    {
        return void_until_us_[place_of(mark)].load(std::memory_order_acquire);
    }

    /* What was asked up to this moment, by the same clock, and has not been
     * answered yet is void. */
    void ignore_until(RefusalMark mark, int64_t us) noexcept;

    /* A refusal asked for up to then is not to be remembered any more. */
    int64_t ignored_until(RefusalMark mark) const noexcept
    {
        return ignored_until_us_[place_of(mark)].load(
            std::memory_order_acquire);
    }

  private:
    std::atomic<int64_t> until_us_[kCount];
    std::atomic<int64_t> void_until_us_[kCount];
    std::atomic<int64_t> ignored_until_us_[kCount];
};

}  // namespace sl
