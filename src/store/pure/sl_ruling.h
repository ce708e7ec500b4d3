/*
 * What an operator has decided about one client in one zone: to lock it out for
 * a while (a ban), to give it another max for a while (an override), or both.
 *
 * Rulings live in the store, with what the store counts for that client, so
 * they hold on every server. Their ends are moments of the store's own clock.
 */

#pragma once

#include <algorithm>
#include <cstdint>

namespace sl {

/* For Ruling::max and LimitState::ruled_max: that of the limit itself. */
constexpr int64_t kOwnMax = 0;

struct Ruling {
    /* 0: it is not banned. */
    int64_t ban_until_us = 0;

    /* At least 1, or kOwnMax. */
    int64_t max = kOwnMax;
    int64_t max_until_us = 0;

    bool bans(int64_t now_us) const noexcept { return ban_until_us > now_us; }

    bool overrides(int64_t now_us) const noexcept
    {
        return max != kOwnMax && max_until_us > now_us;
    }

    /* What a limit with this max allows the client now. */
    int64_t max_for(int64_t own_max, int64_t now_us) const noexcept
    {
        return overrides(now_us) ? max : own_max;
    }

    /* From then on it says nothing any more. */
    int64_t ends_us() const noexcept
    {
        return std::max(ban_until_us, max != kOwnMax ? max_until_us : 0);
    }
};

/* What is to be done about a client. */
enum class Act {
    kLook,     /* nothing: where does it stand? */
    kForget,   /* what was counted, and a ban */
    kBan,      /* for so long; 0 lifts a ban */
    kOverride, /* its max, for so long; 0 lifts an override */
};

struct Intervention {
    Act act = Act::kLook;
    int64_t for_us = 0;
    int64_t max = kOwnMax;
};

/* How an operator may rule: no longer than this, and at least so long. */
constexpr int64_t kShortestRuling = 1000000;
constexpr int64_t kLongestRuling = int64_t{366} * 24 * 60 * 60 * 1000000;

}  // namespace sl
