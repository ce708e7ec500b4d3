#include "store/pure/sl_store_metrics.h"

namespace sl {

void Durations::add(int64_t us) noexcept
{
    size_t i = 0;

    while (i < kBuckets && us > kBounds[i]) {
        i++;
    }

    sl::add(counts_[i]);
    sl::add(sum_us_, us > 0 ? static_cast<uint64_t>(us) : 0);
}

}  // namespace sl
