/*
 * Breakers of servers, in memory that the workers share. Servers of a cluster
 * come and go: a place that nobody has asked for lately is given to another.
 */

#pragma once

#include <cstddef>
#include <string_view>

#include "redis/pure/sl_breaker.h"

namespace sl {

/* All zero: nobody has a place. */
class SharedBreakers {
  public:
    static constexpr size_t kPlaces = 64;

    /*
     * A place that no worker has asked for in so long is of no use to any of
     * them: they have forgotten the server, or were killed. The time is long,
     * as a worker that is held up for longer finds another server there.
     */
    static constexpr int64_t kIdleMs = 10 * 60 * 1000;

    /*
     * The place of the server of this name, the same for all workers. Whoever
     * uses it goes on asking for it, so as to keep it, and uses what is
     * returned from then on. nullptr: all places are in use.
     */
    BreakerState *of(std::string_view server, int64_t now_ms) noexcept;

    unsigned open_count() const noexcept;

    /* See Store::next_outage(). */
    bool next_outage(size_t *place, int64_t now_ms, Outage *outage) noexcept;

  private:
    struct Place {
        /* The server's hash, and when the place was asked for last: one number,
         * so that a place is taken in one step. 0: it is nobody's. */
        std::atomic<uint64_t> owner;
        BreakerState state;
    };

    Place places_[kPlaces];
};

}  // namespace sl
