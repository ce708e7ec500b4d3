#include "config/sl_config_zone.h"

namespace sl {

namespace {

/* The algorithm as the configuration writes it. */
ngx_str_t algorithm_text(const Zone &zone, u_char (&memory)[64])
{
    switch (zone.algorithm) {
    case Algorithm::kPacked:
        return str("algorithm=packed");

    case Algorithm::kBuckets:
        return str(
            view(memory, ngx_snprintf(memory, sizeof(memory),
                                      "algorithm=buckets buckets=%ui",
                                      static_cast<ngx_uint_t>(zone.buckets))));

    case Algorithm::kLog:
        break;
    }

    return str("algorithm=log");
}

/* False, with a message, if a zone cannot be used in both ways. */
bool agree(ngx_conf_t *cf, const Zone &here, const Zone &first)
{
    if (here.window != first.window) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: zone \"%V\" has a window of "
                           "%M ms here, but %M ms in %V:%ui; one zone has "
                           "one count and needs one window",
                           &here.name, here.window, first.window,
                           &first.place.file, first.place.line);
        return false;
    }

    if (here.algorithm != first.algorithm || here.buckets != first.buckets) {
        u_char memory[2][64];
        ngx_str_t ours = algorithm_text(here, memory[0]);
        ngx_str_t theirs = algorithm_text(first, memory[1]);

        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: zone \"%V\" has %V here, but %V "
                           "in %V:%ui; one zone has one count and needs one "
                           "algorithm",
                           &here.name, &ours, &theirs, &first.place.file,
                           first.place.line);
        return false;
    }

    if (here.counts_refused != first.counts_refused) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: zone \"%V\" has %scount=denied "
                           "here, but %scount=denied in %V:%ui; one zone has "
                           "one count, and refused requests are part of it or "
                           "are not",
                           &here.name, here.counts_refused ? "" : "no ",
                           first.counts_refused ? "" : "no ", &first.place.file,
                           first.place.line);
        return false;
    }

    /* of refused requests it keeps as many as max, so there has to be one */
    if (here.is_log() && here.counts_refused && here.max != first.max) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: zone \"%V\" has max=%L here, but "
                           "max=%L in %V:%ui; one zone has one count, which "
                           "with count=denied needs one max, or "
                           "algorithm=buckets",
                           &here.name, here.max, first.max, &first.place.file,
                           first.place.line);
        return false;
    }

    if (view(here.unit) != view(first.unit)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: zone \"%V\" has unit=%V here, but "
                           "unit=%V in %V:%ui; one zone has one count and "
                           "needs one unit",
                           &here.name, &here.unit, &first.unit,
                           &first.place.file, first.place.line);
        return false;
    }

    if (view(here.store_name) != view(first.store_name)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: zone \"%V\" has store=%V here, but "
                           "store=%V in %V:%ui; one zone has one count and "
                           "needs one store",
                           &here.name, &here.store_name, &first.store_name,
                           &first.place.file, first.place.line);
        return false;
    }

    return true;
}

}  // namespace

Zone *find_or_add_zone(ngx_conf_t *cf, const Zone &here) noexcept
{
    MainConf *mcf = main_conf(cf);

    for (Zone *zone : elements<Zone *>(mcf->zones)) {
        if (view(zone->name) == view(here.name)) {
            if (!agree(cf, here, *zone)) {
                return nullptr;
            }

            if (zone->max != here.max) {
                zone->max = kMaxVaries;
            }

            return zone;
        }
    }

    auto *zone = static_cast<Zone *>(ngx_palloc(cf->pool, sizeof(Zone)));
    auto **slot = static_cast<Zone **>(ngx_array_push(&mcf->zones));

    if (zone == nullptr || slot == nullptr) {
        return nullptr;
    }

    *zone = here;
    *slot = zone;

    return zone;
}

}  // namespace sl
