#include "store/pure/sl_memory_lists.h"

#include <algorithm>

namespace sl {

CellNumber IdleLists::least_wanted(const CellNumber *spared,
                                   size_t count) const noexcept
{
    const CellNumber *end = spared + count;
    CellNumber found = kNoCell;

    for (CellNumber number : cells_.header().oldest) {
        while (number != kNoCell && std::find(spared, end, number) != end) {
            number = cells_.key(number).newer;
        }

        if (number != kNoCell
            && (found == kNoCell || goes_before(number, found))) {
            found = number;
        }
    }

    return found;
}

/* Between keys of two lists, each the longest idle one of its list. */
bool IdleLists::goes_before(CellNumber a, CellNumber b) const noexcept
{
    if (is_expired(a) != is_expired(b)) {
        return is_expired(a);
    }

    bool a_is_regular = is_of_regulars(cells_.key(a).list);

    if (a_is_regular != is_of_regulars(cells_.key(b).list)) {
        return !a_is_regular;
    }

    return cells_.key(a).touched_s < cells_.key(b).touched_s;
}

}  // namespace sl
