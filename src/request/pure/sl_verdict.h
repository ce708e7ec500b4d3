/*
 * What follows from a store's answer for a request. Everything that a client is
 * shown (allowed or not, Remaining, Reset, Retry-After) is derived here, so
 * that every store leads to the same answers.
 */

#pragma once

#include "store/pure/sl_limit_state.h"

namespace sl {

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

/* 80 % or more of the limit is used. */
bool is_near_limit(const Verdict &v) noexcept;

/* What is left of max: never negative where it is known, else -1. To a client
 * that is banned nothing is, whatever it has used. */
int64_t remaining(const Verdict &v) noexcept;

/* The state as if this request, which has that cost, had not been counted. */
LimitState uncounted(LimitState counted, int64_t cost) noexcept;

/* Whole seconds that cover `us`; at least 1, as headers want it. */
int64_t seconds_to_wait(int64_t us) noexcept;

}  // namespace sl
