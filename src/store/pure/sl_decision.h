/*
 * What a store says about a request's limits, and what follows from it.
 *
 * A store answers three whole numbers per limit, and when that was. Everything
 * a client is shown (allowed or not, Remaining, Reset, Retry-After) is derived
 * from them here, so that every store leads to the same answers.
 */

#pragma once

#include <cstddef>
#include <cstdint>

namespace sl {

/* Most limits one question can be about. */
constexpr size_t kMaxLimits = 16;

/* For LimitState::used: nobody was asked, or the store did not get that far. */
constexpr int64_t kUnknownUse = -1;

/*
 * For LimitState::wait_us: there is no such moment. Nothing is in the window,
 * or the limit would not admit this request ever.
 */
constexpr int64_t kNoWait = 0;

/* For LimitState::place: the store can do without. */
constexpr uint64_t kNoPlace = 0;

/* One limit as a store found it. */
struct LimitState {
    /* There is room for this request. */
    bool admits;

    /* There was, and the request was counted; so it can be taken back. */
    bool is_counted;

    /* Used of max in the window; with this request if that was counted. */
    int64_t used;

    /*
     * Microseconds. If `admits`: until the oldest counted request leaves the
     * window. If not: until this request would be admitted.
     */
    int64_t wait_us;

    /* If it was counted: where, as the store wants to be told to find it. */
    uint64_t place = kNoPlace;
};

/* Numbers a store answers per limit: admits, used, wait_us. */
constexpr size_t kNumbersPerLimit = 3;

/* Numbers in an answer about so many limits: the last one is the time. */
constexpr size_t numbers_in_answer(size_t limits)
{
    return limits * kNumbersPerLimit + 1;
}

/*
 * Turns a store's numbers into `limits` states and the time of the answer in
 * microseconds. False if they are no answer to a question about that many.
 */
bool read_answer(const int64_t *numbers, size_t count, size_t limits,
                 LimitState *states, int64_t *time_us) noexcept;

/* What is known of one limit of a request. */
struct Verdict {
    int64_t max;
    bool dry_run;

    /* If not, there was no answer, and `state` means nothing. */
    bool known;
    LimitState state;
};

/* The request must not pass because of it, or must not but for a dry run. */
bool is_refusal(const Verdict &v) noexcept;
bool is_dry_refusal(const Verdict &v) noexcept;

/*
 * Whether headers and variables show `a` rather than `b`: what refuses before
 * what only would (a dry run) before what admits before what is not known; of
 * those that refuse the longest wait, of those that admit the least remaining.
 */
bool outweighs(const Verdict &a, const Verdict &b) noexcept;

/* 80 % or more of it are used. */
bool is_near_limit(const Verdict &v) noexcept;

/* Never negative where it is known, else -1. */
int64_t remaining(const Verdict &v) noexcept;

/* Whole seconds that cover `us`; at least 1, as headers want it. */
int64_t seconds_to_wait(int64_t us) noexcept;

}  // namespace sl
