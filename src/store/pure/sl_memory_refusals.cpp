#include "store/pure/sl_memory_refusals.h"

#include <algorithm>

#include "store/pure/sl_memory_lists.h"
#include "store/pure/sl_memory_recovery.h"
#include "store/pure/sl_stamp.h"

namespace sl {

namespace {

/* A clock that is being set right may run faster than ours by this part. */
constexpr int64_t kPartsOfDrift = 1000;

/*
 * A store whose clock has stepped back names waits that are longer than its
 * window; whether they stay so is not known. What an operator has ruled is
 * known for certain, and may last for longer, but not for ever.
 */
int64_t certain_wait(const LimitQuery &limit, const LimitState &state)
{
    bool is_ruled = state.is_banned || state.ruled_max != kOwnMax;

    return std::min(state.wait_us,
                    longest_wait(limit) + (is_ruled ? kLongestRuling : 0));
}

}  // namespace

/*
 * The wait is counted from when the question was sent, not from when the
 * answer came: the store looked at its clock in between.
 */
void Refusals::remember(const LimitQuery &limit, const LimitState &state,
                        int64_t asked_us, int64_t clock_us) const noexcept
{
    int64_t wait = certain_wait(limit, state);
    int64_t took = clock_us - asked_us;

    /* nobody knows how long it took if our clock has stepped back meanwhile */
    if (took < 0 || wait <= took) {
        return;
    }

    Change change(cells_);

    int64_t since_us = cells_.header().clock.set(clock_us) - took;
    int64_t lasts_us = wait - took;

    keys_.expire_idle(lasts_us);

    KeyName name = keys_.name_of(limit, KeyOf::kRefusal);
    CellNumber number = keys_.find(name);

    if (number == kNoCell) {
        number = add(name, lasts_us);

        if (number == kNoCell) {
            return;
        }
    } else {
        bool is_regular = IdleLists::is_of_regulars(cells_.key(number).list);

        IdleLists(cells_).move_to(number,
                                  IdleLists::list_of(lasts_us) + is_regular);
    }

    KeyCell &key = cells_.key(number);

    cells_.block(key.first_block).refusal = {
        state.used, since_us,        since_us + wait, since_us,
        asked_us,   state.ruled_max, state.is_banned};
    key.expires_us = since_us + wait;
}

/* A key with a block for the note; kNoCell if there is no room. */
CellNumber Refusals::add(const KeyName &name, int64_t lasts_us) const noexcept
{
    if (!keys_.make_room(2, nullptr, 0)) {
        return kNoCell;
    }

    CellNumber number = keys_.add(name, lasts_us);
    CellNumber block = cells_.take();
    KeyCell &key = cells_.key(number);

    cells_.block(block).tag = CellTag::kRefusal;
    cells_.block(block).next = kNoCell;
    in_this_order();
    key.first_block = block;
    key.last_block = block;
    key.block_count = 1;

    return number;
}

Recalled Refusals::recall(const LimitQuery &limit, int64_t clock_us,
                          int64_t max_age_us, LimitState *state,
                          int64_t void_until_us) const noexcept
{
    Change change(cells_);
    int64_t now_us = cells_.header().clock.set(clock_us);
    CellNumber number = keys_.find(keys_.name_of(limit, KeyOf::kRefusal));

    if (number == kNoCell) {
        return Recalled::kNothing;
    }

    RefusalNote &found = cells_.block(cells_.key(number).first_block).refusal;
    int64_t drift = (now_us - found.since_us) / kPartsOfDrift;

    if (now_us + drift >= found.until_us || found.asked_us <= void_until_us) {
        return Recalled::kNothing;
    }

    IdleLists(cells_).touch(number);

    if (now_us - found.checked_us >= max_age_us) {
        found.checked_us = now_us;
        return Recalled::kAskAgain;
    }

    *state = LimitState{
        false,    false,           found.used,     found.until_us - now_us,
        kNoPlace, found.ruled_max, found.is_banned};

    return Recalled::kRefusal;
}

void Refusals::forget(const LimitQuery &limit) const noexcept
{
    Change change(cells_);
    CellNumber number = keys_.find(keys_.name_of(limit, KeyOf::kRefusal));

    if (number != kNoCell) {
        keys_.remove(number);
    }
}

}  // namespace sl
