#include "store/pure/sl_refusal_marks.h"

#include <algorithm>

#include "base/pure/sl_siphash.h"
#include "store/pure/sl_stamp.h"

namespace sl {

/* The highest bit is left out, so that no mark is kNoMark. */
RefusalMark RefusalMarks::mark_of(std::string_view zone,
                                  uint64_t store) noexcept
{
    return public_siphash64(store, zone) >> 1;
}

namespace {

/* The latest moment counts. */
void move_on(std::atomic<int64_t> *moment, int64_t us) noexcept
{
    int64_t known = moment->load();

    while (known < us && !moment->compare_exchange_weak(known, us)) {
    }
}

}  // namespace

void RefusalMarks::refused_until(RefusalMark mark, int64_t us) noexcept
{
    move_on(&until_us_[place_of(mark)], us);
}

void RefusalMarks::refused(const LimitQuery &limit, const LimitState &state,
                           int64_t asked_us) noexcept
{
    refused_until(limit.refusal_mark,
                  asked_us + std::min(state.wait_us, longest_wait(limit)));
}

void RefusalMarks::forget_until(RefusalMark mark, int64_t us) noexcept
{
    size_t place = place_of(mark);

    ignore_until(mark, us);
    move_on(&void_until_us_[place], us);

    /* should a refusal be remembered at this very moment, whoever comes next
     * asks once more than need be */
    until_us_[place].store(0);
}

void RefusalMarks::ignore_until(RefusalMark mark, int64_t us) noexcept
{
    move_on(&ignored_until_us_[place_of(mark)], us);
}

}  // namespace sl
