/*
 * Which server of a Redis Cluster has which slots.
 *
 * That is learned from CLUSTER NODES, for which the servers are asked in turn:
 * now and then, and soon whenever something shows that it is out of date. In
 * between it is learned from the servers that send calls elsewhere.
 */

#pragma once

#include "base/sl_wakeup.h"
#include "redis/pure/sl_cluster_slot.h"
#include "redis/sl_cluster_nodes.h"

namespace sl {

class ClusterOwners {
  public:
    ClusterOwners(const RedisSettings &settings, ClusterNodes &nodes) noexcept;

    void start() noexcept;

    /* No server is known to have anything any more, and none is asked. */
    void stop() noexcept;

    /* nullptr: nobody knows. */
    ClusterNode *of(unsigned slot) const noexcept { return owners_[slot]; }

    /* The lowest slot from this one on whose server has none below it; slots of
     * which nobody knows whose they are count as those of one more server.
     * kClusterSlots: there is none. */
    unsigned next_lowest(unsigned slot) const noexcept;

    /* How often it has changed who has what, as far as is known. */
    unsigned changes() const noexcept { return changes_; }

    /* A server says that this one has the slot; nullptr: one that cannot be
     * connected to has it. */
    void moved(unsigned slot, ClusterNode *to) noexcept;

    /* What is known may be out of date. */
    void refresh_soon() noexcept;

  private:
    struct MapCommand : RedisCommand {
        ClusterOwners *owners;

        /* Who is asked; nullptr: nobody. */
        ClusterNode *node;
    };

    void refresh() noexcept;
    void ask() noexcept;
    void give_up_if_silent() noexcept;
    void learn(std::string_view map, const ClusterNode &who_says_so) noexcept;
    ClusterNode *node_of(const ClusterPrimary &primary,
                         const ClusterNode &who_says_so) noexcept;
    void give(unsigned first, unsigned last, ClusterNode *to) noexcept;
    void take_slots(ClusterNode *node, std::string_view slots) noexcept;
    void choose_probe_key(ClusterNode *node) noexcept;
    void remove_unused() noexcept;

    static void on_map(RedisCommand *command, redisReply *reply) noexcept;

    const RedisSettings &settings_;
    ClusterNodes &nodes_;
    ClusterNode *owners_[kClusterSlots];
    unsigned changes_;

    /* When to ask next, and when that was done last. */
    Wakeup next_refresh_;
    ngx_msec_t refreshed_at_;
    MapCommand map_command_;
};

}  // namespace sl
