#include "redis/sl_single_routes.h"

#include <algorithm>
#include <new>

#include "redis/pure/sl_cluster_map.h"
#include "redis/pure/sl_cluster_slot.h"

namespace sl {

namespace {

/*
 * A primary that was replaced but does not know it yet goes on counting, for
 * nobody: only Sentinels can tell.
 */
constexpr ngx_msec_t kWatchEveryMs = 5000;

}  // namespace

SingleRoutes::SingleRoutes(const RedisSettings &settings,
                           SharedBreakers &breakers, SharedSlots &slots,
                           StoreMetrics &metrics) noexcept
    : settings_(settings),
      /* it is the only server that asks for a place, and keeps it */
      breaker_(*breakers.of(view(settings.name),
                            static_cast<int64_t>(ngx_current_msec)),
               ngx_worker),
      slots_(slots), metrics_(metrics),
      lanes_(new (std::nothrow) Lane[settings.connections]()), sentinel_(0),
      watcher_(settings, sentinel_),
      next_watch_(
          Wakeup::calling<&SingleRoutes::watch>(this, Wakeup::kCancelable))
{}

SingleRoutes::~SingleRoutes()
{
    stop();
    delete[] lanes_;
}

RedisLocator *SingleRoutes::new_locator() noexcept
{
    if (settings_.topology == Topology::kSentinel) {
        return new (std::nothrow) SentinelLocator(settings_, sentinel_);
    }

    return new (std::nothrow)
        FixedLocator(settings_, settings_.endpoints, settings_.endpoint_count);
}

bool SingleRoutes::fill(Lane *lane) noexcept
{
    lane->locator = new_locator();

    if (lane->locator != nullptr) {
        lane->channel = new (std::nothrow)
            RedisChannel(settings_, settings_.name, *lane->locator, breaker_,
                         metrics_, *this);
    }

    return lane->channel != nullptr;
}

bool SingleRoutes::start() noexcept
{
    if (lanes_ == nullptr
        || !std::all_of(lanes_, lanes_ + settings_.connections,
                        [this](Lane &lane) { return fill(&lane); }))
    {
        return false;
    }

    for (ngx_uint_t i = 0; i < settings_.connections; i++) {
        lanes_[i].channel->open();
    }

    if (settings_.topology == Topology::kSentinel) {
        watch_later();
    }

    return true;
}

void SingleRoutes::stop() noexcept
{
    watcher_.cancel();
    next_watch_.cancel();

    for (ngx_uint_t i = 0; lanes_ != nullptr && i < settings_.connections; i++)
    {
        delete lanes_[i].channel;
        delete lanes_[i].locator;
        lanes_[i] = {};
    }
}

void SingleRoutes::renew_logins() noexcept
{
    for (ngx_uint_t i = 0; i < settings_.connections; i++) {
        lanes_[i].channel->renew_login();
    }
}

RedisChannel *SingleRoutes::channel_for(unsigned slot) noexcept
{
    return lanes_[slot % settings_.connections].channel;
}

void SingleRoutes::channel_down(RedisChannel &channel) noexcept
{
    if (settings_.topology != Topology::kSentinel) {
        return;
    }

    for (ngx_uint_t i = 0; i < settings_.connections; i++) {
        if (lanes_[i].channel == &channel) {
            static_cast<SentinelLocator *>(lanes_[i].locator)->distrust();
        }
    }
}

/* ---- a server that has slots ---- */

void SingleRoutes::found_slots() noexcept
{
    if (!slots_.are_there.exchange(true)) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "sliding_limit: redis \"%V\" refuses calls about keys "
                      "of different slots: each limit is asked about alone "
                      "from now on; for a Redis Cluster use cluster://",
                      &settings_.name);
    }
}

/* There is nobody to send the call to. But the slot is remembered: probes about
 * it will show whether that is mended. */
CallPtr SingleRoutes::redirect(RedisChannel &, CallPtr call,
                               std::string_view error) noexcept
{
    Redirection where;

    if (parse_redirection(error, &where)) {
        slots_.elsewhere.store(where.slot + 1);
    }

    return call;
}

bool SingleRoutes::probe_key(const RedisChannel &, RedisKey *key) const noexcept
{
    unsigned elsewhere = slots_.elsewhere.load();

    std::string_view prefix = view(settings_.prefix);

    *key = elsewhere != 0
               ? redis_key(prefix, "", tag_of_slot(elsewhere - 1).view(),
                           KeyStyle::kInBraces)
               : redis_key(prefix, "", "probe", KeyStyle::kPlain);

    return true;
}

/* The key is as long as the first one, so that whatever stands before them,
 * their slots differ. */
bool SingleRoutes::other_probe_key(RedisKey *key) const noexcept
{
    *key = redis_key(view(settings_.prefix), "", "other", KeyStyle::kPlain);

    return !needs_one_slot();
}

/* ---- a primary that Sentinels watch over ---- */

void SingleRoutes::watch_later() noexcept
{
    next_watch_.after(kWatchEveryMs
                      + static_cast<ngx_msec_t>(ngx_random())
                            % (kWatchEveryMs / 4));
}

void SingleRoutes::watch() noexcept
{
    watcher_.locate(*this);
}

void SingleRoutes::located(const RedisEndpoint &where) noexcept
{
    watch_later();

    for (ngx_uint_t i = 0; i < settings_.connections; i++) {
        RedisChannel *channel = lanes_[i].channel;

        if (channel != nullptr && channel->connection().is_up()
            && !channel->connection().leads_to(where))
        {
            ngx_str_t host = where.host;

            ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                          "sliding_limit: redis \"%V\": the primary is now "
                          "%V:%d",
                          &settings_.name, &host, static_cast<int>(where.port));
            channel->connection().renew();
        }
    }
}

/* That no Sentinel answers is no reason to leave a connection that works. */
void SingleRoutes::not_located(Trouble, std::string_view) noexcept
{
    watch_later();
}

}  // namespace sl
