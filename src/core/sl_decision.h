/*
 * What a store says about a request's limits, and what follows from it.
 *
 * A store answers three whole numbers per limit. Everything a client is shown
 * (allowed or not, Remaining, Reset, Retry-After) is derived from them here,
 * so that every store leads to the same answers.
 */

#pragma once

#include <cstddef>
#include <cstdint>

namespace sl {

/* Most limits one request can be checked against. */
constexpr size_t kMaxLimits = 16;

/* For LimitState::wait_us: a limit that never admits anything. */
constexpr int64_t kWaitingIsNoUse = 0;

/* One limit as a store found it. */
struct LimitState {
    /* There is room for this request. */
    bool admits;

    /* Requests in the window; this one included if all limits admitted it. */
    int64_t used;

    /*
     * Microseconds. If `admits`: until the oldest counted request leaves the
     * window. If not: until this request would be admitted.
     */
    int64_t wait_us;
};

/* Numbers a store answers per limit: admits, used, wait_us. */
constexpr size_t kNumbersPerLimit = 3;

/*
 * Turns a store's numbers into `limits` states. False if they are not an
 * answer to a question about that many limits.
 */
bool read_states(const int64_t *numbers, size_t count, LimitState *states,
                 size_t limits) noexcept;

struct Decision {
    /* Every limit admits the request. */
    bool admitted;

    /*
     * Index of the limit to show: the one with the longest wait if refused,
     * the one with the least remaining if admitted. The first wins a draw.
     */
    size_t shown;
};

/* `maxima[i]` is the limit that `states[i]` was judged by. `limits` >= 1. */
Decision decide(const LimitState *states, const int64_t *maxima,
                size_t limits) noexcept;

/* Never negative, even where `max` was lowered below what is used. */
int64_t remaining(int64_t max, int64_t used) noexcept;

/* Whole seconds that cover `us`; at least 1, as headers want it. */
int64_t seconds_to_wait(int64_t us) noexcept;

}  // namespace sl
