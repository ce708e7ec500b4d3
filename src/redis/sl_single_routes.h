/* The channels to a single server, which has all keys. Sentinels may know where
 * it is. */

#pragma once

#include "base/sl_wakeup.h"
#include "redis/pure/sl_cluster_slot.h"
#include "redis/sl_redis_routes.h"
#include "redis/sl_sentinel.h"

namespace sl {

/*
 * What workers have found out together about a server that was configured as
 * the only one, but has slots: as one of a cluster, or a proxy in front of
 * several.
 */
struct SharedSlots {
    /* The server refuses calls about keys of different slots. */
    std::atomic<bool> are_there;

    /* A slot that another server has, and 1 more; 0: none is known. */
    std::atomic<unsigned> elsewhere;
};

class SingleRoutes final : public RedisRoutes, private LocatorUser {
  public:
    SingleRoutes(const RedisSettings &settings, SharedBreakers &breakers,
                 SharedSlots &slots, StoreMetrics &metrics) noexcept;
    ~SingleRoutes() override;

    SingleRoutes(const SingleRoutes &) = delete;
    SingleRoutes &operator=(const SingleRoutes &) = delete;

    bool start() noexcept override;
    void stop() noexcept override;
    void renew_logins() noexcept override;
    RedisChannel *channel_for(unsigned slot) noexcept override;

    unsigned next_server(unsigned slot) const noexcept override
    {
        return slot == 0 ? 0 : kClusterSlots;
    }

    bool knows_server(unsigned slot) const noexcept override
    {
        return slot == 0;
    }

    unsigned map_changes() const noexcept override { return 0; }

    bool needs_one_slot() const noexcept override
    {
        return slots_.are_there.load(std::memory_order_relaxed);
    }

    void found_slots() noexcept override;
    CallPtr redirect(RedisChannel &from, CallPtr call,
                     std::string_view error) noexcept override;
    bool probe_key(const RedisChannel &, RedisKey *key) const noexcept override;
    bool other_probe_key(RedisKey *key) const noexcept override;

    CallPtr postpone(CallPtr call) noexcept override { return call; }
    void channel_up(RedisChannel &) noexcept override {}
    void channel_down(RedisChannel &channel) noexcept override;

  private:
    /* Each channel has a locator of its own. */
    struct Lane {
        RedisLocator *locator;
        RedisChannel *channel;
    };

    RedisLocator *new_locator() noexcept;
    bool fill(Lane *lane) noexcept;
    void watch() noexcept;
    void watch_later() noexcept;
    void located(const RedisEndpoint &where) noexcept override;
    void not_located(Trouble trouble,
                     std::string_view reason) noexcept override;

    const RedisSettings &settings_;
    WorkerBreaker breaker_;
    SharedSlots &slots_;
    StoreMetrics &metrics_;
    Lane *lanes_;

    /* The Sentinel that is asked first. */
    ngx_uint_t sentinel_;

    /* Asks Sentinels now and then whether the primary is another one. */
    SentinelLocator watcher_;
    Wakeup next_watch_;
};

}  // namespace sl
