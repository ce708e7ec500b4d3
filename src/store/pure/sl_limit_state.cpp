#include "store/pure/sl_limit_state.h"

namespace sl {

namespace {

/* What `admits` may be; 0: there is no room. */
constexpr int64_t kAdmitted = 1;
constexpr int64_t kCounted = 2;
constexpr int64_t kBanned = 3;

/* A century, in microseconds: sums with it do not overflow. */
constexpr int64_t kLongestWait = int64_t{100} * 366 * 86400 * 1000000;

}  // namespace

bool read_answer(const int64_t *numbers, size_t count, size_t limits,
                 LimitState *states, int64_t *time_us) noexcept
{
    bool is_ruled = count == numbers_in_ruled_answer(limits);

    if (limits > kMaxLimitsInAnswer
        || (count != numbers_in_answer(limits) && !is_ruled))
    {
        return false;
    }

    const int64_t *maxes = numbers + numbers_in_answer(limits);

    for (size_t i = 0; i < limits; i++, numbers += kNumbersPerLimit) {
        if (numbers[0] < 0 || numbers[0] > kBanned || numbers[1] < 0
            || numbers[2] < 0 || numbers[2] > kLongestWait
            || (is_ruled && maxes[i] < 0))
        {
            return false;
        }

        states[i] =
            LimitState{numbers[0] == kAdmitted || numbers[0] == kCounted,
                       numbers[0] == kCounted,
                       numbers[1],
                       numbers[2],
                       kNoPlace,
                       is_ruled ? maxes[i] : kOwnMax,
                       numbers[0] == kBanned};
    }

    *time_us = numbers[0];

    return *time_us >= 0;
}

}  // namespace sl
