/*
 * What requests have cost after all, where that is known only when they end:
 * how it compares with what they had reserved, and how it is distributed.
 *
 * It lies in memory that several processes share. Counting is a few atomic
 * additions; a process that is killed on the way has counted a part, and that
 * is all. Sums start anew at 2^64, as counters may.
 */

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/pure/sl_counter.h"

namespace sl {

/* How a request was settled in a zone. */
struct Settlement {
    int64_t reserved; /* when it came */
    int64_t cost;     /* after all */

    /* If not, nobody said what it has cost, and the reservation stands. */
    bool is_known;
};

/* How a cost compares with its reservation: it was more, less, or just that, or
 * nobody has said; one macro, so that a value and its name cannot part. */
#define SL_SETTLED(X)                                                          \
    X(kUp, "up")                                                               \
    X(kDown, "down")                                                           \
    X(kEven, "even")                                                           \
    X(kStood, "stood")

#define SL_VALUE(value, name) value,
#define SL_NAME(value, name) name,
#define SL_COUNT(value, name) +1

enum class Settled : size_t { SL_SETTLED(SL_VALUE) };

constexpr size_t kSettled = 0 SL_SETTLED(SL_COUNT);

constexpr std::string_view kSettledNames[] = {SL_SETTLED(SL_NAME)};

#undef SL_VALUE
#undef SL_NAME
#undef SL_COUNT

class Settlements {
  public:
    /* Costs up to each of these, and more than the one before. */
    static constexpr uint64_t kBounds[] = {
        0,          1,           10,           100,          1000,
        10000,      100000,      1000000,      10000000,     100000000,
        1000000000, 10000000000, 100000000000, 1000000000000};
    static constexpr size_t kBuckets = sizeof(kBounds) / sizeof(kBounds[0]);

    void add(const Settlement &settlement) noexcept;

    bool are_any() const noexcept;

    /* How many requests cost as much as bucket `i` says; kBuckets is for what
     * is above all bounds. One whose reservation stands cost that. */
    uint64_t in_bucket(size_t i) const noexcept { return costs_[i].load(); }

    uint64_t sum() const noexcept { return sum_.load(); }

    /* By Settled. */
    Counter requests[kSettled];

    /* Units that were reserved, that were entered beyond that in the end, and
     * that were given back. */
    Counter reserved;
    Counter entered;
    Counter given_back;

  private:
    Counter costs_[kBuckets + 1];
    Counter sum_;
};

}  // namespace sl
