#include "store/pure/sl_memory_deed.h"

#include <algorithm>

#include "store/pure/sl_memory_chain.h"
#include "store/pure/sl_memory_rulings.h"
#include "store/pure/sl_memory_standing.h"
#include "store/pure/sl_stamp.h"

namespace sl {

/* Without what has ended. */
Ruling Deed::ruled() const noexcept
{
    Rulings rulings(cells_);
    const Ruling *found = rulings.are_any(now_us_)
                              ? rulings.find(rulings.name_of(client_))
                              : nullptr;
    Ruling ruling;

    if (found != nullptr && found->bans(now_us_)) {
        ruling.ban_until_us = found->ban_until_us;
    }

    if (found != nullptr && found->overrides(now_us_)) {
        ruling.max = found->max;
        ruling.max_until_us = found->max_until_us;
    }

    return ruling;
}

bool Deed::drop_expired() const noexcept
{
    CellNumber number = find();

    return number == kNoCell
           || Chain(cells_, cells_.key(number))
                  .drop_front(last_expired(client_, now_us_));
}

bool Deed::rule(const Intervention &intervention) noexcept
{
    switch (intervention.act) {
    case Act::kLook:
        return true;

    case Act::kForget:
        ruling_.ban_until_us = 0;
        break;

    case Act::kBan:
        ruling_.ban_until_us = end_of(intervention);
        break;

    case Act::kOverride:
        ruling_.max_until_us = end_of(intervention);
        ruling_.max = ruling_.max_until_us != 0 ? intervention.max : kOwnMax;
        break;
    }

    return Rulings(cells_).set(client_, ruling_, now_us_);
}

int64_t Deed::end_of(const Intervention &intervention) const noexcept
{
    return intervention.for_us > 0
               ? now_us_ + std::min(intervention.for_us, kLongestRuling)
               : 0;
}

void Deed::forget_counts() const noexcept
{
    CellNumber number = find();

    if (number != kNoCell) {
        keys_.remove(number);
    }
}

void Deed::tell(Standing *standing) const noexcept
{
    CellNumber number = find();

    read_standing(cells_, client_,
                  number != kNoCell ? &cells_.key(number) : nullptr, ruling_,
                  now_us_, standing);
}

}  // namespace sl
