#include "config/sl_link.h"

#include <algorithm>
#include <new>

#include "config/sl_config_redis.h"
#include "request/sl_recording.h"

namespace sl {

const NamedStore *find_store(const MainConf &mcf,
                             std::string_view name) noexcept
{
    auto *stores = static_cast<const NamedStore *>(mcf.stores.elts);

    for (ngx_uint_t i = 0; i < mcf.stores.nelts; i++) {
        if (view(stores[i].name) == name) {
            return &stores[i];
        }
    }

    return nullptr;
}

namespace {

constexpr size_t kDefaultMemory = 16 * 1024 * 1024;

bool use_memory(ngx_conf_t *cf, MainConf *mcf)
{
    void *store = ngx_palloc(cf->pool, sizeof(MemoryStore));
    void *deny_cache = ngx_palloc(cf->pool, sizeof(DenyCache));

    mcf->table = SharedMemory::create(
        cf, mcf->memory_size,
        {mcf->zones.nelts, mcf->stores.nelts + 1, mcf->page_policy.len > 0});

    mcf->recorder = Recorder::create(cf->pool, mcf->zones.nelts);

    if (store == nullptr || deny_cache == nullptr || mcf->table == nullptr
        || mcf->recorder == nullptr)
    {
        return false;
    }

    mcf->memory = new (store) MemoryStore(*mcf->table);
    mcf->deny_cache = new (deny_cache) DenyCache(*mcf->table);

    return true;
}

/* Whoever wants to see the metrics must get them. */
bool has_room_for_metrics(ngx_conf_t *cf, const MainConf &mcf)
{
    size_t least =
        SharedMemory::size_with_metrics(mcf.zones.nelts, mcf.stores.nelts + 1);

    if (mcf.page_policy.len == 0 || mcf.memory_size >= least) {
        return true;
    }

    ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                  "sliding_limit: sliding_limit_memory of %uzk is too small "
                  "for the metrics of %ui zones, must be at least %uzk",
                  mcf.memory_size / 1024, mcf.zones.nelts,
                  (least + 1023) / 1024);

    return false;
}

bool find_store_of(ngx_conf_t *cf, const MainConf &mcf, Zone *zone)
{
    std::string_view name = view(zone->store_name);
    const NamedStore *found = find_store(mcf, name);

    if (found != nullptr) {
        zone->store = found->store;
        return true;
    }

    if (name == kMemoryStore || name == kDefaultStore) {
        zone->store = mcf.memory;
        return true;
    }

    ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                  "sliding_limit: zone \"%V\" in %V:%ui has store=%V, "
                  "but there is no sliding_limit_redis with name=%V",
                  &zone->name, &zone->place.file, zone->place.line,
                  &zone->store_name, &zone->store_name);

    return false;
}

template <typename Function>
void for_each_level(const MainConf &mcf, Function function)
{
    auto **levels = static_cast<ngx_array_t **>(mcf.levels.elts);

    for (ngx_uint_t i = 0; i < mcf.levels.nelts; i++) {
        auto *limits = static_cast<Limit *>(levels[i]->elts);

        function(limits, limits + levels[i]->nelts);
    }
}

/* As they are written: what they come to is known only with a request. */
bool have_same_key(const Limit &a, const Limit &b)
{
    auto text = [](const ngx_http_complex_value_t *value) {
        return value != nullptr ? view(value->value) : std::string_view();
    };

    return text(&a.key) == text(&b.key) && text(a.fallback) == text(b.fallback);
}

/* Limits that stand together are asked about in several questions: one may be
 * refused after another has counted the request, which is then taken back. */
bool is_divided(const Limit *first, const Limit *end)
{
    return std::any_of(first, end, [first](const Limit &limit) {
        return limit.zone->store != first->zone->store
               || limit.phase != first->phase
               || (limit.zone->store->decides_together() == Together::kSameKey
                   && !have_same_key(limit, *first));
    });
}

/* Where refusals can be remembered. */
void find_lasting_refusals(const MainConf &mcf)
{
    for_each_level(mcf, [](Limit *first, Limit *end) {
        bool divided = is_divided(first, end);

        for (Limit *limit = first; limit != end; limit++) {
            if (divided || limit->counts_refused
                || limit->count_status != nullptr) {
                limit->zone->is_revised = true;
            }

            if (end - first > 1) {
                limit->zone->has_company = true;
            }
        }
    });

    for_each_level(mcf, [&mcf](Limit *first, Limit *end) {
        /* a refusal by any of them has to be counted */
        bool counts = std::any_of(first, end, [](const Limit &limit) {
            return limit.counts_refused;
        });

        for (Limit *limit = first; limit != end; limit++) {
            bool last = !counts && !limit->zone->is_revised
                        && limit->zone->store != mcf.memory;

            limit->refusal_mark =
                last ? RefusalMarks::place_of(view(limit->zone->name))
                     : kNoMark;
        }
    });
}

}  // namespace

bool link_configuration(ngx_conf_t *cf) noexcept
{
    MainConf *mcf = main_conf(cf);
    auto **zones = static_cast<Zone **>(mcf->zones.elts);

    ngx_conf_init_size_value(mcf->memory_size, kDefaultMemory);

    bool is_used = mcf->zones.nelts > 0 || mcf->page_policy.len > 0;

    if (is_used && (!has_room_for_metrics(cf, *mcf) || !use_memory(cf, mcf))) {
        return false;
    }

    auto *stores = static_cast<NamedStore *>(mcf->stores.elts);

    for (ngx_uint_t i = 0; i < mcf->stores.nelts; i++) {
        if (!look_up_redis(cf, stores[i])) {
            return false;
        }
    }

    for (ngx_uint_t i = 0; i < mcf->zones.nelts; i++) {
        zones[i]->index = i;

        if (!find_store_of(cf, *mcf, zones[i])) {
            return false;
        }
    }

    find_lasting_refusals(*mcf);

    return true;
}

}  // namespace sl
