/*
 * Whether a store is worth asking: known by all workers together, in memory
 * that they share.
 *
 *   closed ──several failures in a row──▶ open ──probe succeeds──▶ closed
 *     └────failure that concerns all──────▲ └─▶ probe fails, a longer delay
 *
 * While it is open nobody waits for the store. One worker at a time has the
 * right to probe it: who takes that right has it for a while, and if it dies
 * with it, another one can take it then. Delays grow up to a ceiling and are
 * jittered, so that many servers which lost the same store do not come back in
 * step.
 *
 * Times are milliseconds of a clock that all workers share, never 0.
 */

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "store/pure/sl_outage.h"

namespace sl {

/* All zero: closed. */
struct BreakerState {
    /* When it may be probed; 0: it is closed. */
    std::atomic<int64_t> next_probe;

    std::atomic<int64_t> opened_at;
    std::atomic<int64_t> closed_at;
    std::atomic<int64_t> failed_at;

    /* A bit for each worker that has a connection; nginx has no more. */
    static constexpr size_t kMaxWorkers = 1024;
    std::atomic<uint64_t> connected[kMaxWorkers / 64];

    /* Before jitter; 0: the shortest. */
    std::atomic<int64_t> delay;

    /* In a row; at different times. */
    std::atomic<uint32_t> failures;

    /* What was wrong last, in the caller's terms, and in words. */
    std::atomic<uint32_t> reason;
    OutageNote outage;
};

class Breaker {
  public:
    static constexpr int64_t kShortestDelay = 100;
    static constexpr int64_t kLongestDelay = 1000;

    /* So many failures in a row open it. */
    static constexpr uint32_t kTolerated = 5;

    /* Who fails again so soon has not recovered: delays go on growing. */
    static constexpr int64_t kSettled = 1000;

    /* The right to probe; 0: it is not to be had. */
    using Ticket = int64_t;

    explicit Breaker(BreakerState &state) noexcept : state_(&state) {}

    /* It is another state from now on. False: it is the same. */
    bool move_to(BreakerState &state) noexcept
    {
        bool is_another = state_ != &state;

        state_ = &state;

        return is_another;
    }

    bool is_open() const noexcept { return state_->next_probe.load() != 0; }

    /* The store has answered in time. Does not close it. */
    void succeeded() noexcept;

    /*
     * It has not. True if that opened it. Failures at the same time count as
     * one: a worker that was held up finds all its questions overdue at once,
     * and none of them may have left it.
     */
    bool failed(int64_t now, uint32_t random) noexcept;

    /*
     * It cannot be used, by nobody. With `least_delay` before the first probe.
     * True if that opened it.
     */
    bool failed_for_all(int64_t now, int64_t least_delay,
                        uint32_t random) noexcept;

    /*
     * A worker that cannot connect may be alone with that. Workers have numbers
     * that a new one inherits if it takes the place of one that was killed.
     */
    void set_connected(uint64_t worker, bool is_connected) noexcept;
    bool is_connected_elsewhere(uint64_t worker) const noexcept;

    /* Open, and it is time: the right to probe for `span` from now on. */
    Ticket take_probe(int64_t now, int64_t span) noexcept;

    /* The same before it is time, because there is reason to hope. */
    Ticket take_probe_early(int64_t now, int64_t span) noexcept;

    /* Both mean nothing if the ticket has run out and another has been taken.
     */
    void probe_failed(Ticket ticket, int64_t now, int64_t least_delay,
                      uint32_t random) noexcept;
    bool probe_succeeded(Ticket ticket, int64_t now) noexcept;

    /* There is no such store any more. */
    void forget() noexcept { state_->next_probe = 0; }

    /* It is another store's from now on. */
    void reset() noexcept;

    /* How long it was, or has been open. */
    int64_t open_for(int64_t now) const noexcept
    {
        return now - state_->opened_at.load();
    }

    /* Whether this is another reason than the last one. */
    bool is_news(uint32_t reason) noexcept
    {
        return state_->reason.exchange(reason) != reason;
    }

    /* Says what is wrong, to whoever wants to know. */
    void explain(std::string_view server, std::string_view reason) noexcept
    {
        state_->outage.write(server, reason);
    }

    /* What was said last, and how long it has been open. */
    Outage outage(int64_t now) const noexcept;

  private:
    bool open(int64_t now, int64_t least_delay, uint32_t random) noexcept;
    bool schedule(int64_t instead_of, int64_t now, int64_t delay, int64_t least,
                  uint32_t random) noexcept;

    BreakerState *state_;
};

}  // namespace sl
