#include "redis/sl_redis_store.h"

#include <new>

#include "base/pure/sl_siphash.h"
#include "redis/pure/sl_cluster_slot.h"
#include "redis/sl_client_errand.h"
#include "redis/sl_cluster_routes.h"
#include "redis/sl_redis_login.h"

namespace sl {

namespace {

constexpr ngx_msec_t kStartAgainMs = 1000;

/* How often files with passwords are looked at. */
constexpr ngx_msec_t kLookEveryMs = 1000;

}  // namespace

RedisStore::RedisStore(const RedisSettings &settings) noexcept
    : settings_(settings), shared_(nullptr),
      next_start_(
          Wakeup::calling<&RedisStore::start>(this, Wakeup::kCancelable)),
      next_look_(Wakeup::calling<&RedisStore::watch_passwords>(
          this, Wakeup::kCancelable))
{}

/* A reload does not reuse this memory: workers of the old configuration, who
 * may have an old password, do not decide for those of the new one. */
bool RedisStore::share(ngx_conf_t *cf, const ngx_str_t &name) noexcept
{
    ngx_str_t zone_name;

    zone_name.len = sizeof("sliding_limit:") - 1 + name.len;
    zone_name.data =
        static_cast<u_char *>(ngx_pnalloc(cf->pool, zone_name.len));

    if (zone_name.data == nullptr) {
        return false;
    }

    ngx_sprintf(zone_name.data, "sliding_limit:%V", &name);

    /* nginx's allocator needs some of the memory, and gives whole pages */
    shared_ =
        ngx_shared_memory_add(cf, &zone_name, sizeof(Shared) + 8 * ngx_pagesize,
                              &ngx_http_sliding_limit_module);

    if (shared_ == nullptr) {
        return false;
    }

    shared_->init = init_shared;
    shared_->noreuse = 1;

    return true;
}

ngx_int_t RedisStore::init_shared(ngx_shm_zone_t *zone, void *) noexcept
{
    auto *pool = reinterpret_cast<ngx_slab_pool_t *>(zone->shm.addr);
    void *memory = ngx_slab_alloc(pool, sizeof(Shared));

    if (memory == nullptr) {
        return NGX_ERROR;
    }

    zone->data = new (memory) Shared();

    return NGX_OK;
}

void RedisStore::start() noexcept
{
    if (is_cluster()) {
        routes_.reset(new (std::nothrow) ClusterRoutes(
            settings_, shared().breakers, metrics()));
    } else {
        routes_.reset(new (std::nothrow) SingleRoutes(
            settings_, shared().breakers, shared().slots, metrics()));
    }

    if (routes_ == nullptr || !routes_->start()) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "sliding_limit: redis \"%V\": out of memory, trying "
                      "again in %M ms",
                      &settings_.name, kStartAgainMs);
        routes_.reset();
        next_start_.after(kStartAgainMs);
        return;
    }

    if (has_password_file(settings_)) {
        next_look_.after(kLookEveryMs);
    }
}

/* Connections are told even if nothing has changed now: one of them may have
 * found a new password when it connected. */
void RedisStore::watch_passwords() noexcept
{
    refresh_passwords(settings_);
    routes_->renew_logins();
    next_look_.after(kLookEveryMs);
}

/* Logins, timeouts and TLS are left out: with others the counts are the same.
 */
uint64_t RedisStore::identity() const noexcept
{
    uint64_t hash =
        static_cast<uint64_t>(settings_.topology) << 32 | settings_.db;

    hash = public_siphash64(hash, view(settings_.prefix));
    hash = public_siphash64(hash, view(settings_.primary));

    for (ngx_uint_t i = 0; i < settings_.endpoint_count; i++) {
        const RedisEndpoint &endpoint = settings_.endpoints[i];

        hash = public_siphash64(hash + endpoint.port, view(endpoint.host));
    }

    return hash;
}

unsigned RedisStore::breakers_open() const noexcept
{
    return shared().breakers.open_count();
}

Together RedisStore::decides_together() const noexcept
{
    if (is_cluster()) {
        return Together::kSameKey;
    }

    return routes_ != nullptr && routes_->needs_one_slot() ? Together::kNone
                                                           : Together::kAll;
}

bool RedisStore::next_outage(size_t *place, Outage *outage) const noexcept
{
    return shared().breakers.next_outage(
        place, static_cast<int64_t>(ngx_current_msec), outage);
}

void RedisStore::stop() noexcept
{
    next_start_.cancel();
    next_look_.cancel();
    walks_.end();

    if (routes_ != nullptr) {
        routes_->stop();
        routes_.reset();
    }
}

ScriptArgs RedisStore::args_for(const Query &query) const noexcept
{
    ScriptArgs args(query, view(settings_.prefix),
                    is_cluster() ? KeyStyle::kInBraces : KeyStyle::kPlain);

    /* on a cluster all keys of a question are in one slot */
    if (is_cluster()) {
        args.slot = cluster_slot(args.limits[0].key.view());
    } else if (settings_.connections > 1) {
        args.slot = cluster_slot(query.first_key);
    }

    return args;
}

RedisChannel *RedisStore::channel_for(const ScriptArgs &args) noexcept
{
    return routes_ != nullptr ? routes_->channel_for(args.slot) : nullptr;
}

PendingQuestion *RedisStore::ask(const Query &query, AnswerReceiver &receiver,
                                 Answer *answer) noexcept
{
    answer->known = false;
    answer->error = StoreError::kDown;

    auto waited = static_cast<ngx_msec_t>(query.waited_us / 1000);

    if (waited >= settings_.timeout) {
        answer->error = StoreError::kTimeout;
        return nullptr;
    }

    ScriptArgs args = args_for(query);
    RedisChannel *channel = channel_for(args);

    if (channel == nullptr) {
        return nullptr;
    }

    if (!channel->is_usable()) {
        channel->turned_away();
        return nullptr;
    }

    CallPtr call =
        RedisCall::create(RedisCall::Kind::kQuestion, args, &receiver);

    if (call == nullptr) {
        answer->error = StoreError::kMemory;
        return nullptr;
    }

    call->set_provisional(Provisional::of(query, args));
    call->set_waited(waited);

    return channel->ask(std::move(call), answer);
}

void RedisStore::settle(const Query &query, int64_t time_us) noexcept
{
    ScriptArgs args = args_for(query);
    RedisChannel *channel = channel_for(args);

    args.settle(time_us);

    if (channel != nullptr) {
        channel->settle(args);
    }
}

/* ---- operators ---- */

ErrandDesk RedisStore::errand_desk() const noexcept
{
    return ErrandDesk(settings_, *routes_, shared().breakers);
}

PendingQuestion *RedisStore::intervene(const LimitQuery &client,
                                       const Intervention &intervention,
                                       OperatorReceiver &receiver) noexcept
{
    if (routes_ != nullptr) {
        return ClientErrand::send(errand_desk(), client, intervention,
                                  receiver);
    }

    ClientAnswer answer{};

    answer.error = StoreError::kDown;
    receiver.receive(answer);

    return nullptr;
}

PendingQuestion *RedisStore::list_rulings(std::string_view zone,
                                          std::string_view cursor,
                                          OperatorReceiver &receiver) noexcept
{
    if (routes_ != nullptr) {
        return walks_.start(errand_desk(), zone, cursor, receiver);
    }

    RulingsAnswer answer{};

    answer.error = StoreError::kDown;
    receiver.receive(answer);

    return nullptr;
}

#define SL_TEXT_OF(number) #number
#define SL_VERSION_OF(major, minor, patch)                                     \
    SL_TEXT_OF(major) "." SL_TEXT_OF(minor) "." SL_TEXT_OF(patch)

std::string_view hiredis_version() noexcept
{
    return SL_VERSION_OF(HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
}

bool hiredis_has_tls() noexcept
{
#if (SL_HAVE_TLS)
    return true;
#else
    return false;
#endif
}

}  // namespace sl
