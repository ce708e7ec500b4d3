/*
 * What a store says about a request's limits: three whole numbers per limit,
 * and when that was. What follows from it is told in request/pure/sl_verdict.h.
 */

#pragma once

#include <cstddef>
#include <cstdint>

#include "store/pure/sl_ruling.h"

namespace sl {

/* Most limits one question can be about. */
constexpr size_t kMaxLimits = 16;

/* Most limits one answer can be about: those of one question, or of several
 * that were asked together. */
constexpr size_t kMaxLimitsInAnswer = 32;

/* For LimitState::used: nobody was asked. */
constexpr int64_t kUnknownUse = -1;

/* More is never used of a limit, so that all sums are exact wherever they are
 * made: what would go beyond is not counted. Every max is far smaller. */
constexpr int64_t kMostUsed = 9000000000000000;

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

    /* What an operator has ruled: another max, unless it is kOwnMax; and that
     * the client is banned, which is why the limit does not admit. */
    int64_t ruled_max = kOwnMax;
    bool is_banned = false;
};

/* Numbers a store answers per limit: admits, used, wait_us. */
constexpr size_t kNumbersPerLimit = 3;

/* Numbers in an answer about so many limits: the last one is the time. Where an
 * operator has given the client another max, one more for each limit follows:
 * that max, or kOwnMax. */
constexpr size_t numbers_in_answer(size_t limits)
{
    return limits * kNumbersPerLimit + 1;
}

constexpr size_t numbers_in_ruled_answer(size_t limits)
{
    return numbers_in_answer(limits) + limits;
}

/*
 * Turns a store's numbers into `limits` states and the time of the answer in
 * microseconds. False if they are no answer to a question about that many.
 */
bool read_answer(const int64_t *numbers, size_t count, size_t limits,
                 LimitState *states, int64_t *time_us) noexcept;

}  // namespace sl
