/*
 * The breaker of a server, as a worker has it: with how many connections of
 * this worker to it are up. The other workers are told while there is any.
 */

#pragma once

#include "redis/pure/sl_breaker.h"

namespace sl {

class WorkerBreaker final : public Breaker {
  public:
    /* Another worker of this number may have been killed. */
    WorkerBreaker(BreakerState &state, uint64_t worker) noexcept
        : Breaker(state), worker_(worker), connections_(0)
    {
        set_connected(worker_, false);
    }

    /* Goes on with another state. */
    void move_to(BreakerState &state) noexcept
    {
        if (Breaker::move_to(state)) {
            set_connected(worker_, connections_ > 0);
        }
    }

    void connection_up() noexcept
    {
        if (connections_++ == 0) {
            set_connected(worker_, true);
        }
    }

    void connection_down() noexcept
    {
        if (--connections_ == 0) {
            set_connected(worker_, false);
        }
    }

    /* A connection is up, of this worker or of another one. */
    bool is_connected() const noexcept
    {
        return connections_ > 0 || is_connected_elsewhere(worker_);
    }

  private:
    const uint64_t worker_;
    unsigned connections_;
};

}  // namespace sl
