/* The channels to the servers of a store, and which of them a call takes. */

#pragma once

#include "sl_redis_channel.h"

namespace sl {

class RedisRoutes : public RedisRouter {
  public:
    virtual ~RedisRoutes() = default;

    virtual void start() noexcept = 0;
    virtual void stop() noexcept = 0;

    /* To the server that has the keys of this slot; nullptr: none is known. */
    virtual RedisChannel *channel_for(unsigned slot) noexcept = 0;
};

/*
 * Breakers of servers, in memory that the workers share. Those of a cluster
 * come and go: one that is new to the workers takes a place that is free.
 */
class SharedBreakers {
  public:
    /* `server` is its name; the same place for the same name. */
    BreakerState &of(std::string_view server) noexcept;

    unsigned open_count() const noexcept;

    /* As Store::next_outage(). */
    bool next_outage(size_t *place, int64_t now, Outage *outage) noexcept;

  private:
    static constexpr size_t kPlaces = 64;

    std::atomic<uint64_t> taken_by_[kPlaces];
    BreakerState states_[kPlaces];
};

}  // namespace sl
