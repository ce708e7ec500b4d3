/*
 * Which of a request's limits are asked about in one question: as many as one
 * store can decide together.
 */

#pragma once

#include <cstddef>
#include <string_view>

#include "store/pure/sl_limit_query.h"
#include "store/pure/sl_limit_state.h"

namespace sl {

class Store;

/* What decides to which question a limit belongs. */
struct Groupable {
    bool is_asked; /* it has been asked about, or need not be */
    const Store *store;
    Together together; /* what that store can decide at once */
    std::string_view key;
};

/* Of two different limits. */
inline bool are_decided_together(const Groupable &a,
                                 const Groupable &b) noexcept
{
    return a.store == b.store
           && (a.together == Together::kAll
               || (a.together == Together::kSameKey && a.key == b.key));
}

/* Indexes of limits, in their order; empty: there is nothing left to ask. */
struct Group {
    size_t members[kMaxLimits];
    size_t count;
};

/* The first limit that is not asked about, and those that are decided together
 * with it; `describe` says of each index what it is. */
template <typename Describe>
Group next_group(size_t limits, Describe describe) noexcept
{
    Group group;
    Groupable first{};

    group.count = 0;

    for (size_t i = 0; i < limits && group.count < kMaxLimits; i++) {
        Groupable next = describe(i);

        if (next.is_asked) {
            continue;
        }

        if (group.count == 0) {
            first = next;
        } else if (!are_decided_together(first, next)) {
            continue;
        }

        group.members[group.count++] = i;
    }

    return group;
}

}  // namespace sl
