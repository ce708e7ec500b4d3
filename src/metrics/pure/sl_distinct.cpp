#include "metrics/pure/sl_distinct.h"

#include <algorithm>
#include <cmath>

namespace sl {

namespace {

/*
 * The two corrections of Otmar Ertl's estimator ("New cardinality estimation
 * algorithms for HyperLogLog sketches", 2017): for registers that nobody has
 * touched, and for those that cannot grow any more. With them it has no bias at
 * any size, and no table of corrections.
 */
double sigma(double x)
{
    if (x == 1.0) {
        return INFINITY;
    }

    double y = 1.0;
    double sum = x;

    for (double before = -1.0; sum != before;) {
        x *= x;
        before = sum;
        sum += x * y;
        y += y;
    }

    return sum;
}

double tau(double x)
{
    if (x == 0.0 || x == 1.0) {
        return 0.0;
    }

    double y = 1.0;
    double sum = 1.0 - x;

    for (double before = -1.0; sum != before;) {
        x = std::sqrt(x);
        before = sum;
        y *= 0.5;
        sum -= (1.0 - x) * (1.0 - x) * y;
    }

    return sum / 3.0;
}

}  // namespace

void Distinct::add(uint64_t hash) noexcept
{
    std::atomic<uint8_t> &reg = registers_[hash >> (64 - kIndexBits)];

    /* the bit that is set ends the run where the hash does */
    uint64_t rest = hash << kIndexBits | uint64_t{1} << (kIndexBits - 1);
    auto run = static_cast<uint8_t>(__builtin_clzll(rest) + 1);
    uint8_t known = reg.load(std::memory_order_relaxed);

    while (known < run
           && !reg.compare_exchange_weak(known, run, std::memory_order_relaxed))
    {}
}

uint32_t Distinct::estimate() const noexcept
{
    constexpr unsigned kLongestRun = 64 - kIndexBits;
    constexpr double kAll = kRegisters;

    uint32_t with_run[kLongestRun + 2] = {};

    /* whatever a register says, there is no longer run */
    for (const std::atomic<uint8_t> &reg : registers_) {
        with_run[std::min<unsigned>(reg.load(std::memory_order_relaxed),
                                    kLongestRun + 1)]++;
    }

    double z = kAll * tau(1.0 - with_run[kLongestRun + 1] / kAll);

    for (unsigned run = kLongestRun; run >= 1; run--) {
        z = 0.5 * (z + with_run[run]);
    }

    z += kAll * sigma(with_run[0] / kAll);

    constexpr double kInfinityFactor = 0.5 / 0.6931471805599453;
    double count = kInfinityFactor * kAll * kAll / z;

    return count < UINT32_MAX ? static_cast<uint32_t>(std::lround(count))
                              : UINT32_MAX;
}

void Distinct::clear() noexcept
{
    for (std::atomic<uint8_t> &reg : registers_) {
        reg.store(0, std::memory_order_relaxed);
    }
}

}  // namespace sl
