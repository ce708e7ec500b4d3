#include "metrics/pure/sl_found_used.h"

namespace sl {

size_t tenth_of(int64_t used, int64_t max) noexcept
{
    constexpr auto kParts = static_cast<int64_t>(kTenths);

    if (used < 0) {
        return 0;
    }

    if (used >= max) {
        return kTenths - 1;
    }

    /* no max is too large to be multiplied, but whatever comes must not
     * overflow */
    return static_cast<size_t>(max <= INT64_MAX / kParts
                                   ? used * kParts / max
                                   : used / (max / kParts + 1));
}

}  // namespace sl
