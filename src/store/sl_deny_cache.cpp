#include "store/sl_deny_cache.h"

#include "base/sl_clock.h"

namespace sl {

bool DenyCache::recall(const Query &query, int64_t now_us, int64_t max_age_us,
                       Recollection *recollection) noexcept
{
    const RefusalMarks &marks = memory_.refusal_marks();
    bool is_refused = false;
    bool is_due = false;

    for (size_t i = 0; i < query.count; i++) {
        const LimitQuery &limit = query.limits[i];
        Recalled &recalled = recollection->recalled[i];

        recalled = Recalled::kNothing;

        if (limit.refusal_mark != kNoMark
            && marks.may_have_refused(limit.refusal_mark, now_us))
        {
            recalled = memory_.locked()->recall(
                limit, monotonic_us(), max_age_us, &recollection->states[i],
                marks.void_until(limit.refusal_mark));
        }

        is_due = is_due || recalled == Recalled::kAskAgain;
        is_refused = is_refused || recalled == Recalled::kRefusal;
    }

    return is_refused && !is_due;
}

void DenyCache::remember(const LimitQuery &limit, const LimitState &state,
                         int64_t asked_us) noexcept
{
    if (limit.refusal_mark == kNoMark
        || asked_us
               <= memory_.refusal_marks().ignored_until(limit.refusal_mark))
    {
        return;
    }

    memory_.refusal_marks().refused(limit, state, asked_us);

    uint64_t evictions;

    {
        SharedMemory::Locked table = memory_.locked();

        table->remember(limit, state, asked_us, monotonic_us());
        evictions = table->stats().evictions;
    }

    memory_.report(evictions, false);
}

void DenyCache::forget(const LimitQuery &limit) noexcept
{
    if (limit.refusal_mark != kNoMark) {
        memory_.locked()->forget(limit);
    }
}

void DenyCache::forget_all(RefusalMark mark) noexcept
{
    if (mark != kNoMark) {
        memory_.refusal_marks().forget_until(mark, monotonic_us());
    }
}

void DenyCache::ignore_what_is_asked(RefusalMark mark) noexcept
{
    if (mark != kNoMark) {
        memory_.refusal_marks().ignore_until(mark, monotonic_us());
    }
}

}  // namespace sl
