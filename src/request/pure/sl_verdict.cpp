#include "request/pure/sl_verdict.h"

#include <algorithm>

namespace sl {

namespace {

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
    if (v.known && v.state.is_banned) {
        return 0;
    }

    if (!v.known || (v.state.used == kUnknownUse && v.max > 0)) {
        return -1;
    }

    return v.max > v.state.used && v.max > 0 ? v.max - v.state.used : 0;
}

LimitState uncounted(LimitState counted, int64_t cost) noexcept
{
    counted.is_counted = false;

    /* a server that counts wrong may say less than this request cost */
    counted.used = std::max<int64_t>(counted.used - cost, 0);

    if (counted.used == 0) {
        counted.wait_us = kNoWait;
    }

    return counted;
}

int64_t seconds_to_wait(int64_t us) noexcept
{
    constexpr int64_t kSecond = 1000000;

    return us <= kSecond ? 1 : (us - 1) / kSecond + 1;
}

}  // namespace sl
