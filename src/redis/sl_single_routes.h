/* One server: it has all keys. Sentinels may know where it is. */

#pragma once

#include "sl_redis_routes.h"
#include "sl_sentinel.h"

namespace sl {

class SingleRoutes final : public RedisRoutes, private LocatorUser {
  public:
    SingleRoutes(const RedisSettings &settings, SharedBreakers &breakers,
                 StoreMetrics &metrics) noexcept;
    ~SingleRoutes() override;

    SingleRoutes(const SingleRoutes &) = delete;
    SingleRoutes &operator=(const SingleRoutes &) = delete;

    void start() noexcept override;
    void stop() noexcept override;
    RedisChannel *channel_for(unsigned slot) noexcept override;

    bool redirect(RedisCall *, std::string_view) noexcept override
    {
        return false;
    }

    bool probe_key(const RedisChannel &, RedisKey *key) const noexcept override
    {
        *key = redis_key(view(settings_.prefix), "", "probe", KeyStyle::kPlain);
        return true;
    }

    void channel_up(RedisChannel &) noexcept override {}
    void channel_down(RedisChannel &channel) noexcept override;

  private:
    /* A connection needs a locator of its own. */
    struct Lane {
        RedisLocator *locator;
        RedisChannel *channel;
    };

    RedisLocator *new_locator() noexcept;
    void watch_later() noexcept;
    void located(const RedisEndpoint &where) noexcept override;
    void not_located(Trouble trouble,
                     std::string_view reason) noexcept override;

    static void on_watch(ngx_event_t *ev) noexcept;

    const RedisSettings &settings_;
    SharedBreakers &breakers_;
    StoreMetrics &metrics_;
    Lane *lanes_;

    /* The Sentinel that is asked first. */
    ngx_uint_t sentinel_;

    /* Asks Sentinels now and then whether the primary is another one. */
    SentinelLocator watcher_;
    ngx_event_t watch_;
};

}  // namespace sl
