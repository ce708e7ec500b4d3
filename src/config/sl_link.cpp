#include "config/sl_link.h"

#include <algorithm>
#include <new>

#include "config/pure/sl_value_variables.h"
#include "config/sl_config_addresses.h"
#include "config/sl_config_redis.h"
#include "config/sl_open_admin.h"
#include "request/sl_recording.h"

namespace sl {

namespace {

constexpr size_t kDefaultMemory = 16 * 1024 * 1024;

/* Creates the memory for counts, refusals and metrics, and the store that is in
 * it. */
bool create_memory(ngx_conf_t *cf, MainConf *mcf)
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

/* Metrics that are to be shown must have room in the memory. */
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

bool give_store(ngx_conf_t *cf, const MainConf &mcf, Zone *zone)
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

/* Calls function(Elements<Limit>) with the limits of each level. */
template <typename Function>
void for_each_level(const MainConf &mcf, Function function)
{
    for (const ngx_array_t *limits : elements<ngx_array_t *>(mcf.levels)) {
        function(elements<Limit>(*limits));
    }
}

/* Compares keys as they are written: their values are known only with a
 * request. */
bool have_same_key(const Limit &a, const Limit &b)
{
    auto text = [](const ngx_http_complex_value_t *value) {
        return value != nullptr ? view(value->value) : std::string_view();
    };

    return text(&a.key) == text(&b.key) && text(a.fallback) == text(b.fallback);
}

/*
 * Whether limits that stand together are asked about in several questions: then
 * one may refuse after another has counted the request, which is taken back.
 */
bool are_divided(const Elements<Limit> &limits)
{
    const Limit &first = limits[0];

    return std::any_of(limits.begin(), limits.end(), [&](const Limit &limit) {
        return limit.zone->store != first.zone->store
               || limit.phase != first.phase
               || (limit.zone->store->decides_together() == Together::kSameKey
                   && !have_same_key(limit, first));
    });
}

void note_how_zones_are_used(const MainConf &mcf)
{
    for_each_level(mcf, [](const Elements<Limit> &limits) {
        bool divided = limits.size() > 1 && are_divided(limits);

        for (Limit &limit : limits) {
            if (divided || limit.count_status != nullptr
                || limit.settle != nullptr || limit.zone->counts_refused)
            {
                limit.zone->is_revised = true;
            }

            if (limit.settle != nullptr) {
                limit.zone->settles = true;
            }

            if (limits.size() > 1) {
                limit.zone->has_company = true;
            }
        }
    });
}

/* A limit applies in several locations if they inherit it. In some of them
 * there may be nothing to read. */
void warn_of_unread_usage(ngx_conf_t *cf, const Limit &limit)
{
    if (limit.settle != nullptr && !limit.has_usage
        && has_variable(view(limit.settle->value), "sliding_limit_usage"))
    {
        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "sliding_limit: zone \"%V\" in %V:%ui has settle=%V, "
                      "but no location with this limit has a "
                      "sliding_limit_usage: the value is empty, unless an "
                      "internal redirect leads to a location that has one; add "
                      "where the number stands in responses, for example "
                      "sliding_limit_usage usage.total_tokens;",
                      &limit.zone->name, &limit.place.file, limit.place.line,
                      &limit.settle->value);
    }
}

/* Beside a limit whose key the client cannot make up, one whose key it can does
 * no harm. */
void warn_of_made_up_keys(ngx_conf_t *cf, const Elements<Limit> &limits)
{
    bool all =
        std::all_of(limits.begin(), limits.end(), [](const Limit &limit) {
            return !find_made_up(view(limit.key.value)).empty()
                   || can_be_left_out(view(limit.key.value));
        });

    for (const Limit &limit : limits) {
        ngx_str_t made_up = str(find_made_up(view(limit.key.value)));

        if (all && made_up.len > 0) {
            ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                          "sliding_limit: zone \"%V\" in %V:%ui has key=%V: a "
                          "client that sends another \"$%V\" with each request "
                          "has another key each time and is not limited; use "
                          "$uri or $sliding_limit_addr instead, or add a limit "
                          "with key=$sliding_limit_addr",
                          &limit.zone->name, &limit.place.file,
                          limit.place.line, &limit.key.value, &made_up);
        }
    }
}

void warn_of_mistakes(ngx_conf_t *cf, const MainConf &mcf)
{
    for_each_level(mcf, [cf](const Elements<Limit> &limits) {
        for (const Limit &limit : limits) {
            warn_of_unread_usage(cf, limit);
        }

        warn_of_made_up_keys(cf, limits);
    });
}

/* Marks the limits whose refusals can be remembered. */
void mark_lasting_refusals(const MainConf &mcf)
{
    for (Zone *zone : elements<Zone *>(mcf.zones)) {
        bool last = !zone->is_revised && zone->store != mcf.memory;

        zone->refusal_mark = last ? RefusalMarks::mark_of(
                                 view(zone->name), zone->store->identity())
                                  : kNoMark;
    }

    for_each_level(mcf, [](const Elements<Limit> &limits) {
        /* a refusal by any of them has to be counted */
        bool counts =
            std::any_of(limits.begin(), limits.end(), [](const Limit &limit) {
                return limit.zone->counts_refused;
            });

        for (Limit &limit : limits) {
            limit.refusal_mark = counts ? kNoMark : limit.zone->refusal_mark;
        }
    });
}

}  // namespace

bool link_configuration(ngx_conf_t *cf) noexcept
{
    MainConf *mcf = main_conf(cf);

    ngx_conf_init_size_value(mcf->memory_size, kDefaultMemory);

    bool is_used = mcf->zones.nelts > 0 || mcf->page_policy.len > 0;

    if (is_used && (!has_room_for_metrics(cf, *mcf) || !create_memory(cf, mcf)))
    {
        return false;
    }

    for (const NamedStore &store : elements<NamedStore>(mcf->stores)) {
        if (!look_up_host_names(cf, store)) {
            return false;
        }
    }

    size_t index = 0;

    for (Zone *zone : elements<Zone *>(mcf->zones)) {
        zone->index = index++;

        if (!give_store(cf, *mcf, zone)) {
            return false;
        }
    }

    note_how_zones_are_used(*mcf);
    mark_lasting_refusals(*mcf);
    warn_of_mistakes(cf, *mcf);
    find_open_admins(cf, *mcf);

    return true;
}

}  // namespace sl
