/*
 * The servers of a Redis Cluster: each has its part of the slots.
 *
 * Who has what is learned from CLUSTER NODES, and in between from the servers
 * themselves, who send calls elsewhere (MOVED, ASK). Until anything is known
 * any server will do: it says who is the right one.
 */

#pragma once

#include "redis/pure/sl_cluster_map.h"
#include "redis/pure/sl_cluster_slot.h"
#include "redis/sl_redis_routes.h"

namespace sl {

class ClusterRoutes final : public RedisRoutes {
  public:
    ClusterRoutes(const RedisSettings &settings, SharedBreakers &breakers,
                  StoreMetrics &metrics) noexcept;
    ~ClusterRoutes() override;

    void start() noexcept override;
    void stop() noexcept override;
    RedisChannel *channel_for(unsigned slot) noexcept override;

    CallPtr redirect(RedisChannel &from, CallPtr call,
                     std::string_view error) noexcept override;
    bool needs_one_slot() const noexcept override { return true; }
    void found_slots() noexcept override {}

    bool other_probe_key(RedisKey *) const noexcept override { return false; }

    bool probe_key(const RedisChannel &channel,
                   RedisKey *key) const noexcept override;
    void channel_up(RedisChannel &channel) noexcept override;
    void channel_down(RedisChannel &channel) noexcept override;

  private:
    struct Node;

    struct MapCommand : RedisCommand {
        ClusterRoutes *routes;

        /* Who is asked; nullptr: nobody. */
        Node *node;
    };

    Node *add_node(std::string_view host, in_port_t port) noexcept;
    BreakerState *breaker_of(const Node &node) noexcept;
    void keep_breakers() noexcept;
    void delete_node(Node *node) noexcept;
    Node *find_node(std::string_view host, in_port_t port) const noexcept;
    Node *find_or_add(const ClusterAddress &address,
                      const Node &who_says_so) noexcept;
    Node *node_of(const RedisChannel &channel) const noexcept;
    Node *any_node() noexcept;
    Node *next_to_ask() noexcept;
    bool is_complete() const noexcept;

    CallPtr send_elsewhere(const RedisChannel &from, CallPtr call,
                           const Redirection &where) noexcept;
    CallPtr send_later(CallPtr call) noexcept;
    void send_waiting() noexcept;

    void refresh_soon() noexcept;
    void refresh() noexcept;
    void give_up_waiting() noexcept;
    void learn(std::string_view map, const Node &who_says_so) noexcept;
    void choose_probe_key(Node *node) noexcept;
    void remove_unused() noexcept;
    bool is_seed(const Node &node) const noexcept;

    static void on_map(RedisCommand *command, redisReply *reply) noexcept;
    static void on_refresh(ngx_event_t *ev) noexcept;
    static void on_waiting(ngx_event_t *ev) noexcept;

    const RedisSettings &settings_;
    SharedBreakers &breakers_;
    StoreMetrics &metrics_;
    Node *nodes_; /* a list */
    Node *owners_[kClusterSlots];

    /* When to ask who has what, and when that was done last. */
    ngx_event_t refresh_;
    ngx_msec_t refreshed_at_;
    MapCommand map_command_;

    /* Calls that are to be tried again in a moment. */
    CallQueue waiting_;
    ngx_event_t waiting_timer_;
};

}  // namespace sl
