#include "store/pure/sl_refusal_marks.h"

#include "base/pure/sl_siphash.h"

namespace sl {

/* Names of zones are the operator's: there is no need for a secret. */
size_t RefusalMarks::place_of(std::string_view zone) noexcept
{
    constexpr uint8_t kNoSecret[kSipHashKeySize] = {};

    return siphash64(zone, kNoSecret) % kCount;
}

/* The longest refusal counts. */
void RefusalMarks::refused_until(size_t place, int64_t us) noexcept
{
    std::atomic<int64_t> &until_us = until_us_[place];
    int64_t known = until_us.load();

    while (known < us && !until_us.compare_exchange_weak(known, us)) {
    }
}

}  // namespace sl
