/*
 * The channels to the servers of a Redis Cluster, each of which has its part of
 * the slots.
 *
 * Until it is known who has what, any server will do: it says who is the right
 * one. What it says so about is sent there, also when slots move (MOVED, ASK),
 * or tried again in a moment (TRYAGAIN).
 */

#pragma once

#include "redis/sl_cluster_owners.h"

namespace sl {

class ClusterRoutes final : public RedisRoutes {
  public:
    ClusterRoutes(const RedisSettings &settings, SharedBreakers &breakers,
                  StoreMetrics &metrics) noexcept;
    ~ClusterRoutes() override;

    void start() noexcept override;
    void stop() noexcept override;
    RedisChannel *channel_for(unsigned slot) noexcept override;

    bool redirect(RedisCall *call, std::string_view error) noexcept override;
    bool needs_one_slot() const noexcept override { return true; }
    void found_slots() noexcept override {}

    bool other_probe_key(RedisKey *) const noexcept override { return false; }

    bool probe_key(const RedisChannel &channel,
                   RedisKey *key) const noexcept override;
    void channel_up(RedisChannel &) noexcept override
    {
        owners_.refresh_soon();
    }
    void channel_down(RedisChannel &) noexcept override
    {
        owners_.refresh_soon();
    }

  private:
    bool send_elsewhere(RedisCall *call, const Redirection &where) noexcept;
    bool send_later(RedisCall *call) noexcept;
    void send_waiting() noexcept;
    RedisCall *next_waiting() noexcept;
    static void give_up(RedisCall *call) noexcept;

    const RedisSettings &settings_;
    ClusterNodes nodes_;
    ClusterOwners owners_;

    /* Between start() and stop(). */
    bool is_running_;

    /* Calls that are to be tried again in a moment. */
    ngx_queue_t waiting_;
    Wakeup try_again_;
};

}  // namespace sl
