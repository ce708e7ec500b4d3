/*
 * The store that counts in Redis: turns a question into one EVALSHA, and sends
 * it to the server that has the keys.
 */

#pragma once

#include "redis/sl_single_routes.h"

namespace sl {

class RedisStore final : public Store {
  public:
    explicit RedisStore(const RedisSettings &settings) noexcept;

    /*
     * The memory for what workers know together; false, with a message, if
     * there is none. To be called once, and before start().
     */
    bool share(ngx_conf_t *cf, const ngx_str_t &name) noexcept;

    std::string_view kind() const noexcept override { return "redis"; }

    std::string_view address() const noexcept override
    {
        return view(settings_.name);
    }

    unsigned breakers_open() const noexcept override;
    bool next_outage(size_t *place, Outage *outage) const noexcept override;
    bool uses_ids() const noexcept override { return true; }

    Together decides_together() const noexcept override;

    PendingQuestion *ask(const Query &query, AnswerReceiver &receiver,
                         Answer *answer) noexcept override;
    void take_back(const Query &query, int64_t time_us) noexcept override;
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

    ScriptArgs args_for(const Query &query, int64_t time_us) const noexcept;
    RedisChannel *channel_for(const ScriptArgs &args) noexcept;

    static ngx_int_t init_shared(ngx_shm_zone_t *zone, void *old) noexcept;

    const RedisSettings &settings_;
    ngx_shm_zone_t *shared_;
    RedisRoutes *routes_; /* nullptr unless started */
};

/* Of the client library that the module was built with, and whether it can
 * speak TLS. */
std::string_view hiredis_version() noexcept;
bool hiredis_has_tls() noexcept;

}  // namespace sl
