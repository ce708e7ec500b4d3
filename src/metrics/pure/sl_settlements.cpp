#include "metrics/pure/sl_settlements.h"

#include <algorithm>

#include "base/pure/sl_number.h"

namespace sl {

namespace {

/* What cannot be is brought to what can, so that no difference overflows. */
uint64_t units(int64_t number)
{
    return static_cast<uint64_t>(std::clamp(number, int64_t{0}, kLargestCount));
}

Settled how(uint64_t reserved, uint64_t cost, bool is_known)
{
    if (!is_known) {
        return Settled::kStood;
    }

    return cost > reserved   ? Settled::kUp
           : cost < reserved ? Settled::kDown
                             : Settled::kEven;
}

}  // namespace

void Settlements::add(const Settlement &settlement) noexcept
{
    uint64_t was = units(settlement.reserved);
    uint64_t is = settlement.is_known ? units(settlement.cost) : was;

    const uint64_t *bound = std::lower_bound(kBounds, kBounds + kBuckets, is);

    sl::add(requests[static_cast<size_t>(how(was, is, settlement.is_known))]);
    sl::add(reserved, was);

    if (is > was) {
        sl::add(entered, is - was);
    } else if (is < was) {
        sl::add(given_back, was - is);
    }

    sl::add(costs_[bound - kBounds]);
    sl::add(sum_, is);
}

bool Settlements::are_any() const noexcept
{
    return std::any_of(
        requests, requests + kSettled,
        [](const Counter &counter) { return counter.load() != 0; });
}

}  // namespace sl
