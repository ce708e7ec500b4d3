/*
 * The store that counts in Redis: turns a question into one EVALSHA, and sends
 * it to the server that has the keys.
 *
 * Who has whom, in each worker:
 *
 *   RedisStore
 *     RedisRoutes          which server has which keys: SingleRoutes (there is
 *                          one, perhaps found by Sentinels) or ClusterRoutes
 *       RedisLocator       where a server is: FixedLocator, SentinelLocator
 *       WorkerBreaker      one per server; all workers share its state
 *       RedisChannel       `connections` per server: the calls on their way
 *         RedisConnection  one hiredis context at a time, set up and watched
 *         RedisRecovery    brings it back, with the breaker and a probe
 *         CallCollector    calls of this turn that can go out together
 *         CallQueue        calls that have no reply yet
 *         Backlog          calls that wait for a connection
 *
 * Whoever is owned knows its owner by a small interface, and no more of it:
 * RedisUser, RecoveryUser, CallCarrier, ChannelOwner, LocatorUser.
 *
 * The words:
 *
 *   question   what one request asks a store: may it pass these limits?
 *   query      how a question is put to any store: limits, keys and id
 *   call       one execution of the script for one request: a question, what
 *              settles it, or a probe
 *   errand     what an operator wants to know or to have done: another command,
 *              which takes the same way as calls, and alone
 *   batch      several calls that are alike, in one command
 *   command    what goes over a connection and has one reply: a call, a batch,
 *              or what a connection says for itself
 */

#pragma once

#include <memory>

#include "redis/sl_rulings_walk.h"
#include "redis/sl_single_routes.h"

namespace sl {

class RedisStore final : public Store {
  public:
    explicit RedisStore(const RedisSettings &settings) noexcept;

    /*
     * Reserves memory for what workers know together; false, with a message,
     * if there is none. To be called once, and before start().
     */
    bool share(ngx_conf_t *cf, const ngx_str_t &name) noexcept;

    std::string_view kind() const noexcept override { return "redis"; }

    std::string_view address() const noexcept override
    {
        return view(settings_.name);
    }

    uint64_t identity() const noexcept override;
    unsigned breakers_open() const noexcept override;
    bool next_outage(size_t *place, Outage *outage) const noexcept override;
    bool uses_ids() const noexcept override { return true; }

    Together decides_together() const noexcept override;

    PendingQuestion *ask(const Query &query, AnswerReceiver &receiver,
                         Answer *answer) noexcept override;
    void settle(const Query &query, int64_t time_us) noexcept override;
    PendingQuestion *intervene(const LimitQuery &client,
                               const Intervention &intervention,
                               OperatorReceiver &receiver) noexcept override;
    PendingQuestion *list_rulings(std::string_view zone,
                                  std::string_view cursor,
                                  OperatorReceiver &receiver) noexcept override;

    void start() noexcept override;
    void stop() noexcept override;

  private:
    /* What workers know together. */
    struct Shared {
        SharedBreakers breakers;
        SharedSlots slots;
    };

    bool is_cluster() const noexcept
    {
        return settings_.topology == Topology::kCluster;
    }

    Shared &shared() const noexcept
    {
        return *static_cast<Shared *>(shared_->data);
    }

    void watch_passwords() noexcept;
    ScriptArgs args_for(const Query &query) const noexcept;
    RedisChannel *channel_for(const ScriptArgs &args) noexcept;

    /* While it is started. */
    ErrandDesk errand_desk() const noexcept;

    static ngx_int_t init_shared(ngx_shm_zone_t *zone, void *old) noexcept;

    const RedisSettings &settings_;
    ngx_shm_zone_t *shared_;

    /* nullptr unless started. */
    std::unique_ptr<RedisRoutes> routes_;

    /* What operators have asked for and does not end with one reply. */
    RulingsWalks walks_;

    /* It is started again, for want of memory the first time. */
    Wakeup next_start_;

    /* Files with passwords are looked at; not set if there are none. */
    Wakeup next_look_;
};

/* The version of the client library that the module was built with, and whether
 * that can speak TLS. */
std::string_view hiredis_version() noexcept;
bool hiredis_has_tls() noexcept;

}  // namespace sl
