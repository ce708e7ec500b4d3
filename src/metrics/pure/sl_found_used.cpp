#include "metrics/pure/sl_found_used.h"

namespace sl {

namespace {

/* The least number that is not below so many tenths of max; which may be too
 * large to be multiplied. */
int64_t beginning_of(size_t tenth, int64_t max)
{
    constexpr auto kParts = static_cast<int64_t>(kTenths);

    auto n = static_cast<int64_t>(tenth);

    return max / kParts * n + (max % kParts * n + kParts - 1) / kParts;
}

}  // namespace

size_t tenth_of(int64_t used, int64_t max) noexcept
{
    size_t tenth = kTenths - 1;

    while (tenth > 0 && used < beginning_of(tenth, max)) {
        tenth--;
    }

    return tenth;
}

}  // namespace sl
