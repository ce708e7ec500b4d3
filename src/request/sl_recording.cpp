#include "request/sl_recording.h"

#include <new>

#include "base/pure/sl_escape.h"

namespace sl {

namespace {

/* A key may be a secret of the client's: the log shows no more of it than
 * needed to tell it from others. */
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

Recorder *Recorder::create(ngx_pool_t *pool, size_t zones) noexcept
{
    void *memory = ngx_palloc(pool, sizeof(Recorder));
    auto **places = static_cast<ZoneMetrics **>(
        ngx_pcalloc(pool, zones * sizeof(ZoneMetrics *)));

    return memory != nullptr && places != nullptr ? new (memory)
                   Recorder(places)
                                                  : nullptr;
}

Recorder::Recorder(ZoneMetrics **zones) noexcept
    : metrics_(nullptr), zones_(zones), worker_(&unseen_), unseen_()
{}

void Recorder::find_places(const MainConf &mcf, ngx_log_t *log) noexcept
{
    metrics_ = mcf.table->metrics();

    if (metrics_ == nullptr) {
        return;
    }

    auto warn = [log](const char *what, const ngx_str_t *name) {
        ngx_log_error(NGX_LOG_WARN, log, 0,
                      "sliding_limit: no room for the metrics of %s \"%V\", "
                      "which a reload has added; a restart makes room",
                      what, name);
    };

    for (const Zone *zone : elements<Zone *>(mcf.zones)) {
        zones_[zone->index] = metrics_->zone(view(zone->name));

        if (zones_[zone->index] == nullptr) {
            warn("zone", &zone->name);
        }
    }

    auto count_in = [this, warn](Store *store, ngx_str_t name) {
        StoreMetrics *metrics = metrics_->store(view(name));

        if (metrics != nullptr) {
            store->count_in(metrics);
        } else {
            warn("store", &name);
        }
    };

    count_in(mcf.memory, str(kMemoryStore));

    for (const NamedStore &named : elements<NamedStore>(mcf.stores)) {
        count_in(named.store, named.name);
    }
}

void Recorder::enter() noexcept
{
    WorkerMetrics *worker = metrics_ != nullptr ? metrics_->enter() : nullptr;

    if (worker != nullptr) {
        worker_ = worker;
    }
}

void Recorder::leave() noexcept
{
    if (worker_ != &unseen_) {
        worker_->leave();
        worker_ = &unseen_;
    }
}

void Recorder::record(ngx_http_request_t *r, const Zone &zone,
                      const ZoneEvent &event) noexcept
{
    ZoneMetrics *place = zones_[zone.index];

    if (place == nullptr) {
        return;
    }

    Persistent persistent;

    place->record(event, metrics_->hash_of(event.key),
                  static_cast<int64_t>(wall_clock_ms()),
                  static_cast<int64_t>(zone.window), &persistent);

    if (persistent.windows != 0) {
        log_persistent(r, zone, persistent);
    }
}

void Recorder::record(const Zone &zone, const Settlement &settlement) noexcept
{
    ZoneMetrics *place = zones_[zone.index];

    if (place != nullptr) {
        place->record(settlement);
    }
}

}  // namespace sl
