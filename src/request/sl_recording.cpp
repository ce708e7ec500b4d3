#include "request/sl_recording.h"

#include "base/pure/sl_escape.h"

namespace sl {

namespace {

/* For a worker that has no place: nobody sees it. */
WorkerMetrics unseen_worker;

/* It may be a secret of the client's: the log shows no more of it than needed
 * to tell it from others. */
void log_persistent(ngx_http_request_t *r, const Zone &zone,
                    const Persistent &client)
{
    char key[kMaxMaskedKey * kLongestEscape];
    char *end = escape_log({client.masked, client.masked_size}, key);
    ngx_str_t shown = str({key, static_cast<size_t>(end - key)});

    ngx_log_error(location_conf(r)->log_level, r->connection->log, 0,
                  "sliding_limit: client \"%V\" has been over its limit in "
                  "zone \"%V\" for %uD windows in a row, refused %uL times",
                  &shown, &zone.name, client.windows, client.refused);
}

}  // namespace

void find_metrics(MainConf *mcf, ngx_log_t *log) noexcept
{
    auto **zones = static_cast<Zone **>(mcf->zones.elts);
    auto *stores = static_cast<NamedStore *>(mcf->stores.elts);

    mcf->metrics = mcf->table->metrics();
    mcf->worker = &unseen_worker;

    if (mcf->metrics == nullptr) {
        return;
    }

    auto warn = [log](const char *what, const ngx_str_t *name) {
        ngx_log_error(NGX_LOG_WARN, log, 0,
                      "sliding_limit: no room for the metrics of %s \"%V\", "
                      "which a reload has added; a restart makes room",
                      what, name);
    };

    for (ngx_uint_t i = 0; i < mcf->zones.nelts; i++) {
        zones[i]->metrics = mcf->metrics->zone(view(zones[i]->name));

        if (zones[i]->metrics == nullptr) {
            warn("zone", &zones[i]->name);
        }
    }

    auto count_in = [mcf, warn](Store *store, ngx_str_t name) {
        StoreMetrics *metrics = mcf->metrics->store(view(name));

        if (metrics != nullptr) {
            store->count_in(metrics);
        } else {
            warn("store", &name);
        }
    };

    count_in(mcf->memory, str(kMemoryStore));

    for (ngx_uint_t i = 0; i < mcf->stores.nelts; i++) {
        count_in(stores[i].store, stores[i].name);
    }
}

void enter_metrics(MainConf *mcf) noexcept
{
    WorkerMetrics *worker =
        mcf->metrics != nullptr ? mcf->metrics->enter() : nullptr;

    if (worker != nullptr) {
        mcf->worker = worker;
    }
}

void leave_metrics(MainConf *mcf) noexcept
{
    if (mcf->worker != &unseen_worker) {
        mcf->worker->leave();
        mcf->worker = &unseen_worker;
    }
}

void record_event(ngx_http_request_t *r, const Zone &zone,
                  const ZoneEvent &event) noexcept
{
    const Metrics *metrics = main_conf(r)->metrics;

    if (zone.metrics == nullptr) {
        return;
    }

    Persistent persistent;

    zone.metrics->record(event, metrics->hash_of(event.key),
                         static_cast<int64_t>(wall_clock_ms()),
                         static_cast<int64_t>(zone.window), &persistent);

    if (persistent.windows != 0) {
        log_persistent(r, zone, persistent);
    }
}

}  // namespace sl
