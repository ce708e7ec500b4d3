#include "store/pure/sl_decision.h"

namespace sl {

namespace {

/* A century, in microseconds: sums with it do not overflow. */
constexpr int64_t kLongestWait = int64_t{100} * 366 * 86400 * 1000000;

int weight(const Verdict &v)
{
    if (!v.known) {
        return 0;
    }

    if (v.state.admits) {
        return 1;
    }

    return v.dry_run ? 2 : 3;
}

/* Of two that refuse; one that never admits has the longest wait. */
bool waits_longer(const LimitState &a, const LimitState &b)
{
    if (a.wait_us == kNoWait || b.wait_us == kNoWait) {
        return b.wait_us != kNoWait;
    }

    return a.wait_us > b.wait_us;
}

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

bool is_refusal(const Verdict &v) noexcept
{
    return v.known && !v.state.admits && !v.dry_run;
}

bool is_dry_refusal(const Verdict &v) noexcept
{
    return v.known && !v.state.admits && v.dry_run;
}

bool outweighs(const Verdict &a, const Verdict &b) noexcept
{
    if (weight(a) != weight(b)) {
        return weight(a) > weight(b);
    }

    if (!a.known) {
        return false;
    }

    return a.state.admits ? remaining(a) < remaining(b)
                          : waits_longer(a.state, b.state);
}

bool is_near_limit(const Verdict &v) noexcept
{
    /* max may be too large to be multiplied */
    return v.known && v.state.used >= v.max - v.max / 5;
}

int64_t remaining(const Verdict &v) noexcept
{
    if (!v.known || (v.state.used == kUnknownUse && v.max > 0)) {
        return -1;
    }

    return v.max > v.state.used && v.max > 0 ? v.max - v.state.used : 0;
}

int64_t seconds_to_wait(int64_t us) noexcept
{
    constexpr int64_t kSecond = 1000000;

    return us <= kSecond ? 1 : (us - 1) / kSecond + 1;
}

}  // namespace sl
