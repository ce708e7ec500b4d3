#include "sl_decision.h"

namespace sl {

bool read_states(const int64_t *numbers, size_t count, LimitState *states,
                 size_t limits) noexcept
{
    if (limits == 0 || limits > kMaxLimits
        || count != limits * kNumbersPerLimit) {
        return false;
    }

    for (size_t i = 0; i < limits; i++, numbers += kNumbersPerLimit) {
        if ((numbers[0] != 0 && numbers[0] != 1) || numbers[1] < 0
            || numbers[2] < 0) {
            return false;
        }

        states[i] = LimitState{numbers[0] == 1, numbers[1], numbers[2]};
    }

    return true;
}

Decision decide(const LimitState *states, const int64_t *maxima,
                size_t limits) noexcept
{
    Decision d{states[0].admits, 0};

    for (size_t i = 1; i < limits; i++) {
        if (states[i].admits != states[d.shown].admits) {
            /* a refusing limit always outweighs an admitting one */
            if (!states[i].admits) {
                d = Decision{false, i};
            }

        } else if (d.admitted) {
            if (remaining(maxima[i], states[i].used)
                < remaining(maxima[d.shown], states[d.shown].used))
            {
                d.shown = i;
            }

        } else if (states[i].wait_us > states[d.shown].wait_us) {
            d.shown = i;
        }
    }

    return d;
}

int64_t remaining(int64_t max, int64_t used) noexcept
{
    return used < max ? max - used : 0;
}

int64_t seconds_to_wait(int64_t us) noexcept
{
    constexpr int64_t kSecond = 1000000;

    return us <= kSecond ? 1 : (us - 1) / kSecond + 1;
}

}  // namespace sl
