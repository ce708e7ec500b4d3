/*
 * The servers of a Redis Cluster that a worker knows, and its channels to each
 * of them.
 */

#pragma once

#include "redis/pure/sl_cluster_map.h"
#include "redis/sl_redis_routes.h"

namespace sl {

class ClusterNode {
  public:
    /* nullptr: out of memory. Connects only when open() is called. */
    static ClusterNode *create(std::string_view host, in_port_t port,
                               const RedisSettings &settings,
                               SharedBreakers &breakers, StoreMetrics &metrics,
                               RedisRoutes &routes) noexcept;

    ~ClusterNode();

    ClusterNode(const ClusterNode &) = delete;
    ClusterNode &operator=(const ClusterNode &) = delete;

    void open() noexcept;

    /* Logs in with new passwords, if there are any. */
    void renew_logins() noexcept;

    /* The address or the name by which it was added. */
    std::string_view host() const noexcept { return host_; }

    /* Whether it was added by this name or address, or announces this name. */
    bool is_called(std::string_view host, in_port_t port) const noexcept;

    /* Whether the configuration names it. */
    bool is_seed() const noexcept;

    /* It is in the map that is being read, under this name; empty: none. */
    void enter_map(std::string_view host_name) noexcept;
    void leave_map() noexcept;

    /* In the last map, or not yet in any: a new one is wanted at first. */
    bool is_wanted() const noexcept { return is_wanted_; }

    RedisChannel &channel_for(unsigned slot) noexcept;

    /* The channel that carries commands which are about no key. */
    RedisChannel &first_channel() noexcept { return channel_for(0); }

    bool has(const RedisChannel &channel) const noexcept;

    /* No call is on its way to it. */
    bool is_idle() const noexcept;

    /* Goes on asking for its breaker's place, and moves if it has another. */
    void keep_breaker() noexcept;

    /* Ends an outage that nobody will see the end of. */
    void forget_outage() noexcept { breaker_.forget(); }

    /* A key in one of its slots, for probes, if there is one. */
    bool has_probe_key = false;
    RedisKey probe_key = {};

    /* Of the list that it is in. */
    ClusterNode *next = nullptr;

  private:
    /* Locators can look for one thing at a time: each channel has its own. */
    struct Lane {
        FixedLocator locator;
        RedisChannel channel;

        Lane(ClusterNode &node, StoreMetrics &metrics,
             RedisRoutes &routes) noexcept
            : locator(node.settings_, &node.endpoint_, 1),
              channel(node.settings_, node.name_, locator, node.breaker_,
                      metrics, routes)
        {}
    };

    ClusterNode(std::string_view host, in_port_t port,
                const RedisSettings &settings,
                SharedBreakers &breakers) noexcept;

    bool add_lanes(StoreMetrics &metrics, RedisRoutes &routes) noexcept;
    BreakerState *shared_breaker() noexcept;

    const RedisSettings &settings_;
    SharedBreakers &breakers_;

    char host_[kMaxHostName + 1];
    RedisEndpoint endpoint_;

    /* What it announces that it is called; empty: nothing. */
    char host_name_[kMaxHostName + 1];

    /* For the log. */
    u_char name_text_[512];
    ngx_str_t name_;

    /* Of the breaker that workers share, or, if there is no place for it, of
     * this worker's own. */
    BreakerState own_state_;
    WorkerBreaker breaker_;
    bool is_shared_;

    bool is_wanted_;
    Lane **lanes_;
};

class ClusterNodes {
  public:
    /* `routes` are those that the channels belong to. */
    ClusterNodes(const RedisSettings &settings, SharedBreakers &breakers,
                 StoreMetrics &metrics, RedisRoutes &routes) noexcept
        : settings_(settings), breakers_(breakers), metrics_(metrics),
          routes_(routes), first_(nullptr)
    {}

    ~ClusterNodes() { clear(); }

    ClusterNodes(const ClusterNodes &) = delete;
    ClusterNodes &operator=(const ClusterNodes &) = delete;

    /* Connects to it. nullptr: out of memory. */
    ClusterNode *add(std::string_view host, in_port_t port) noexcept;

    /* Forgets them all, and answers what they have not answered. */
    void clear() noexcept;

    /* An address without a host is that of the server which says so. */
    ClusterNode *find(const ClusterAddress &address,
                      const ClusterNode &who_says_so) const noexcept;

    /* nullptr: such a server cannot be connected to, or there is no memory. */
    ClusterNode *find_or_add(const ClusterAddress &address,
                             const ClusterNode &who_says_so) noexcept;

    /* nullptr: it is none of theirs. */
    ClusterNode *of(const RedisChannel &channel) const noexcept;

    /* One that answers, if there is one, or else one that may yet. nullptr:
     * there are none at all. */
    ClusterNode *any() noexcept;

    /* Whom to ask for the map. nullptr: nobody answers. */
    ClusterNode *next_to_ask() noexcept;

    /* Whether all servers that are in the map can be asked. */
    bool is_complete() const noexcept;

    /*
     * Takes out a server that has left the cluster and has nothing to do any
     * more; it is the caller's to delete, though not from inside a callback of
     * one of its channels. nullptr: there is none, `except` left aside.
     */
    ClusterNode *take_unused(const ClusterNode *except) noexcept;

    template <typename Function>
    void for_each(Function function) noexcept
    {
        for (ClusterNode *node = first_; node != nullptr; node = node->next) {
            function(*node);
        }
    }

  private:
    const RedisSettings &settings_;
    SharedBreakers &breakers_;
    StoreMetrics &metrics_;
    RedisRoutes &routes_;
    ClusterNode *first_;
};

}  // namespace sl
