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
     * Who has not asked for so long has no use for it any more, or was killed.
     * Long, as whoever is held up for longer would share it with another.
     */
    static constexpr int64_t kIdleMs = 10 * 60 * 1000;

    /*
     * `server` is its name: the same place for the same name, for all workers.
     * Whoever has it goes on asking for it, so as to keep it. nullptr if all
     * places are in use.
     */
    BreakerState *of(std::string_view server, int64_t now_ms) noexcept;

    unsigned open_count() const noexcept;

    /* As Store::next_outage(). */
    bool next_outage(size_t *place, int64_t now_ms, Outage *outage) noexcept;

  private:
    struct Place {
        /* Whose it is and when it was asked for last, in one, so that it is
         * taken at once; 0: nobody's. */
        std::atomic<uint64_t> owner;
        BreakerState state;
    };

    Place places_[kPlaces];
};

}  // namespace sl
