/*
 * What a zone did in each of the last minutes, or hours, in memory of a fixed
 * size that several processes share and none ever locks.
 *
 * Counters only grow, and somebody else keeps them. When a period begins, what
 * they say is noted down: what happened in a period is the difference to the
 * next note. So nothing is counted twice or lost, whoever notes it, and even if
 * nobody does: then the period is part of the one before.
 *
 * Different clients are counted for the period that runs; when it ends, their
 * number is noted.
 */

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "metrics/pure/sl_distinct.h"

namespace sl {

/* What is counted of a zone: in all, or in a period. */
struct Tally {
    uint64_t passed;
    uint64_t rejected;         /* or banned */
    uint64_t rejected_dry_run; /* among those that passed */
    uint64_t failed;

    bool is_empty() const noexcept
    {
        return (passed | rejected | rejected_dry_run | failed) == 0;
    }
};

/* How many different clients there were, as estimated. */
struct Clients {
    uint32_t all;
    uint32_t rejected;
};

struct Period {
    uint64_t begin_s;
    Tally tally;
    Clients clients;
};

/* What is noted down when a period begins; see above. */
struct PeriodNote {
    std::atomic<uint64_t> number; /* of the period, since 1970; 0 if free */
    std::atomic<uint64_t> passed;
    std::atomic<uint64_t> rejected;
    std::atomic<uint64_t> rejected_dry_run;
    std::atomic<uint64_t> failed;
    std::atomic<uint32_t> clients;
    std::atomic<uint32_t> rejected_clients;
};

template <uint64_t kSeconds, size_t kPeriods>
class History {
  public:
    static constexpr size_t kLength = kPeriods;

    /*
     * To be called before something is counted at `now_s`. `so_far` returns the
     * Tally of all times, and is called only when a period begins.
     */
    template <typename SoFar>
    void enter(uint64_t now_s, SoFar so_far) noexcept
    {
        uint64_t now = now_s / kSeconds;
        uint64_t running = running_.load(std::memory_order_acquire);

        /* another process may be a moment ahead; but if the clock has been set
         * back, periods go on from there */
        if (now > number_of(running) || now + 1 < number_of(running)) {
            begin(now, running, so_far());
        }
    }

    /* Counts a client in the period that runs. */
    void add_client(uint64_t hash, bool is_rejected) noexcept
    {
        unsigned half = half_of(running_.load(std::memory_order_acquire));

        clients_[half].add(hash);

        if (is_rejected) {
            rejected_clients_[half].add(hash);
        }
    }

    /* The clients of the period that this moment is part of. */
    Clients clients_at(uint64_t at_s) const noexcept;

    /*
     * The periods up to `now_s`, the oldest first, without those in which
     * nothing happened; returns how many. The last one may be running.
     */
    size_t read(uint64_t now_s, const Tally &so_far,
                Period (&periods)[kPeriods]) const noexcept;

  private:
    /* A word tells which period runs, and which half of the pairs below is its
     * own, so that both change at once. */
    static uint64_t number_of(uint64_t running) { return running >> 1; }
    static unsigned half_of(uint64_t running) { return running & 1; }

    void begin(uint64_t now, uint64_t before, const Tally &so_far) noexcept;

    std::atomic<uint64_t> running_;

    /* The half of each pair that is not in use is empty. */
    Distinct clients_[2];
    Distinct rejected_clients_[2];

    PeriodNote notes_[kPeriods];
};

using MinuteHistory = History<60, 6 * 60>;
using HourHistory = History<60 * 60, 7 * 24>;

}  // namespace sl
