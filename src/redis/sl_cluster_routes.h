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
#include "redis/sl_redis_backlog.h"

namespace sl {

class ClusterRoutes final : public RedisRoutes, private CallCarrier {
  public:
    ClusterRoutes(const RedisSettings &settings, SharedBreakers &breakers,
                  StoreMetrics &metrics) noexcept;
    ~ClusterRoutes() override;

    bool start() noexcept override;
    void stop() noexcept override;

    void renew_logins() noexcept override
    {
        nodes_.for_each([](ClusterNode &node) { node.renew_logins(); });
    }

    RedisChannel *channel_for(unsigned slot) noexcept override;

    unsigned next_server(unsigned slot) const noexcept override
    {
        return owners_.next_lowest(slot);
    }

    bool knows_server(unsigned slot) const noexcept override
    {
        return owners_.of(slot) != nullptr;
    }

    unsigned map_changes() const noexcept override { return owners_.changes(); }

    CallPtr redirect(RedisChannel &from, CallPtr call,
                     std::string_view error) noexcept override;
    CallPtr postpone(CallPtr call) noexcept override;
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
    CallPtr send_elsewhere(const RedisChannel &from, CallPtr call,
                           const Redirection &where) noexcept;
    CallPtr send_later(CallPtr call) noexcept;
    void send_waiting() noexcept;
    void send_postponed() noexcept;
    void give_up(CallPtr call, StoreError why) noexcept;

    /* Calls that wait here are not on their way: no reply can come. */
    void replied(RedisCall *const *, size_t,
                 const redisReply *) noexcept override
    {}
    void timed_out(RedisCall &call) noexcept override;

    const RedisSettings &settings_;
    ClusterNodes nodes_;
    ClusterOwners owners_;

    /* Between start() and stop(). */
    bool is_running_;

    /* Calls that are to be tried again in a moment. */
    CallQueue waiting_;
    Wakeup try_again_;

    /* What is to be settled when there is a server for it, which need not be
     * the one that there was. */
    Backlog postponed_;
    Wakeup next_delivery_;
};

}  // namespace sl
