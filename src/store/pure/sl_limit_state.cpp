#include "store/pure/sl_limit_state.h"

namespace sl {

namespace {

/* A century, in microseconds: sums with it do not overflow. */
constexpr int64_t kLongestWait = int64_t{100} * 366 * 86400 * 1000000;

}  // namespace

bool read_answer(const int64_t *numbers, size_t count, size_t limits,
                 LimitState *states, int64_t *time_us) noexcept
{
    if (limits > kMaxLimits || count != numbers_in_answer(limits)) {
        return false;
    }

    for (size_t i = 0; i < limits; i++, numbers += kNumbersPerLimit) {
        if (numbers[0] < 0 || numbers[0] > 2 || numbers[1] < 0 || numbers[2] < 0
            || numbers[2] > kLongestWait)
        {
            return false;
        }

        states[i] = LimitState{numbers[0] != 0, numbers[0] == 2, numbers[1],
                               numbers[2]};
    }

    *time_us = numbers[0];

    return *time_us >= 0;
}

}  // namespace sl
