/*
 * Whether a server is worth asking. All workers know it together, in memory
 * that they share.
 *
 *   closed ──several failures in a row──▶ open ──probe succeeds──▶ closed
 *     └────failure that concerns all──────▲ └─▶ probe fails, a longer delay
 *
 * While the breaker is open nobody waits for the server. One worker at a time
 * has the right to probe it, and has it for a while: if the worker dies
 * meanwhile, another one can take the right then. Delays grow up to a ceiling
 * and are jittered, so that many an nginx which lost the same server does not
 * come back in step with the others.
 *
 * Times are milliseconds of a clock that all workers share, never 0. Whatever
 * numbers a killed worker has left, sums of them and times do not overflow.
 */

#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "store/pure/sl_outage.h"

namespace sl {

/* What workers share; all zero: the breaker is closed. */
struct BreakerState {
    /* When the server may be probed; 0: the breaker is closed. */
    std::atomic<int64_t> next_probe;

    std::atomic<int64_t> opened_at;
    std::atomic<int64_t> closed_at;
    std::atomic<int64_t> failed_at;

    /* A bit for each worker that has a connection. nginx has no more workers
     * than this. */
    static constexpr size_t kMaxWorkers = 1024;
    std::atomic<uint64_t> connected[kMaxWorkers / 64];

    /* Before the next probe, without jitter; 0: the shortest. */
    std::atomic<int64_t> delay;

    /* How many came in a row, at different times. */
    std::atomic<uint32_t> failures;

    /* What was wrong last: as a number of the caller's, and in words. */
    std::atomic<uint32_t> reason;
    OutageNote outage;
};

class Breaker {
  public:
    static constexpr int64_t kShortestDelay = 100;
    static constexpr int64_t kLongestDelay = 1000;

    /* So many failures in a row open the breaker. */
    static constexpr uint32_t kTolerated = 5;

    /* A server that fails again so soon has not recovered: delays go on
     * growing. */
    static constexpr int64_t kSettled = 1000;

    /* The right to probe; 0: it is not to be had. */
    using Ticket = int64_t;

    explicit Breaker(BreakerState &state) noexcept : state_(&state) {}

    /* Stands for another server's state from now on, or for the same server's
     * at another place. False: it has done so before. */
    bool move_to(BreakerState &state) noexcept
    {
        bool is_another = state_ != &state;

        state_ = &state;

        return is_another;
    }

    bool is_open() const noexcept { return state_->next_probe.load() != 0; }

    /* The server has answered in time. That does not close the breaker. */
    void succeeded() noexcept;

    /*
     * The server has not answered in time. True if that opened the breaker.
     * Failures at the same time count as one: a worker that was held up finds
     * all its questions overdue at once, and perhaps none of them has left it.
     */
    bool failed(int64_t now, uint32_t random) noexcept;

    /*
     * No worker can use the server. The first probe comes after `least_delay`
     * at the earliest. True if that opened the breaker.
     */
    bool failed_for_all(int64_t now, int64_t least_delay,
                        uint32_t random) noexcept;

    /*
     * Which workers have a connection: one that cannot connect may be alone
     * with that. A worker that takes the place of one that was killed inherits
     * its number.
     */
    void set_connected(uint64_t worker, bool is_connected) noexcept;
    bool is_connected_elsewhere(uint64_t worker) const noexcept;

    /* The right to probe for `span` from now on, if the breaker is open and it
     * is time. */
    Ticket take_probe(int64_t now, int64_t span) noexcept;

    /* The same, though it may not be time yet: there is reason to hope. */
    Ticket take_probe_early(int64_t now, int64_t span) noexcept;

    /* What came of a probe. That means nothing if the ticket has run out and
     * another one has been taken. True: the breaker has closed. */
    void probe_failed(Ticket ticket, int64_t now, int64_t least_delay,
                      uint32_t random) noexcept;
    bool probe_succeeded(Ticket ticket, int64_t now) noexcept;

    /* There is no such server any more. */
    void forget() noexcept { state_->next_probe = 0; }

    /* The place is another server's from now on. */
    void reset() noexcept;

    /* How long the breaker has been open, or was when it was open last. */
    int64_t open_for(int64_t now) const noexcept
    {
        return now - std::max<int64_t>(state_->opened_at.load(), 0);
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

    /* What was said last, and how long the breaker has been open. */
    Outage outage(int64_t now) const noexcept;

  private:
    bool open(int64_t now, int64_t least_delay, uint32_t random) noexcept;
    bool schedule(int64_t instead_of, int64_t now, int64_t delay, int64_t least,
                  uint32_t random) noexcept;

    BreakerState *state_;
};

}  // namespace sl
