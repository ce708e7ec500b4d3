#include "store/pure/sl_refusal_marks.h"

#include <algorithm>

#include "base/pure/sl_siphash.h"
#include "store/pure/sl_stamp.h"

namespace sl {

/* Names of zones are the operator's: there is no need for a secret. */
size_t RefusalMarks::place_of(std::string_view zone) noexcept
{
    constexpr uint8_t kNoSecret[kSipHashKeySize] = {};

    return siphash64(zone, kNoSecret) % kCount;
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

void RefusalMarks::refused_until(size_t place, int64_t us) noexcept
{
    move_on(&until_us_[place], us);
}

void RefusalMarks::refused(const LimitQuery &limit, const LimitState &state,
                           int64_t asked_us) noexcept
{
    refused_until(limit.refusal_mark,
                  asked_us + std::min(state.wait_us, longest_wait(limit)));
}

void RefusalMarks::forget_until(size_t place, int64_t us) noexcept
{
    move_on(&void_until_us_[place], us);

    /* should a refusal be remembered at this very moment, whoever comes next
     * asks once more than need be */
    until_us_[place].store(0);
}

}  // namespace sl
