/* The channels to the servers of a store, and which of them a call takes. */

#pragma once

#include "redis/pure/sl_shared_breakers.h"
#include "redis/sl_redis_channel.h"

namespace sl {

class RedisRoutes : public ChannelOwner {
  public:
    virtual ~RedisRoutes() = default;

    /* False: out of memory, and of no use. */
    virtual bool start() noexcept = 0;
    virtual void stop() noexcept = 0;

    /* Logs in to all servers with new passwords, if there are any. */
    virtual void renew_logins() noexcept = 0;

    /* The way to the server that has the keys of this slot; nullptr: none is
     * known. */
    virtual RedisChannel *channel_for(unsigned slot) noexcept = 0;

    /*
     * To find each server once: the lowest slot from this one on whose server
     * has none below it. kClusterSlots: there is none.
     */
    virtual unsigned next_server(unsigned slot) const noexcept = 0;

    /* Whether it is known which server that is. If not, it may be soon. */
    virtual bool knows_server(unsigned slot) const noexcept = 0;

    /* Grows whenever something else becomes known about who has what. */
    virtual unsigned map_changes() const noexcept = 0;
};

}  // namespace sl
