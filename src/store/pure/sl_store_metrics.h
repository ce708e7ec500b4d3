/* What workers count together about a store. */

#pragma once

#include <cstddef>
#include <cstdint>

#include "base/pure/sl_counter.h"
#include "store/pure/sl_store_error.h"

namespace sl {

/* How long something took: how often at most so many microseconds, and more
 * than the bound before. */
class Durations {
  public:
    static constexpr uint32_t kBounds[] = {
        5,    10,    25,    50,    100,    250,    500,    1000,   2500,
        5000, 10000, 25000, 50000, 100000, 250000, 500000, 1000000};
    static constexpr size_t kBuckets = sizeof(kBounds) / sizeof(kBounds[0]);

    void add(int64_t us) noexcept;

    uint64_t sum_us() const noexcept { return sum_us_.load(); }

    /* How often it took as long as bucket `i` says; kBuckets is for what is
     * above all bounds. */
    uint64_t in_bucket(size_t i) const noexcept { return counts_[i].load(); }

  private:
    Counter counts_[kBuckets + 1];
    Counter sum_us_;
};

struct StoreMetrics {
    Durations checks;
    Counter errors[kStoreErrors];
    Counter connects;
    Counter connect_failures;
};

}  // namespace sl
