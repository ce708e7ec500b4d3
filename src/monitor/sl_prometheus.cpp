#include "monitor/sl_prometheus.h"

#include "base/sl_version.h"
#include "monitor/pure/sl_prometheus_family.h"
#include "monitor/pure/sl_settlements_text.h"
#include "monitor/sl_metrics_walk.h"

namespace sl {

namespace {

/* Writes a sample per zone: value(const Zone &, const ZoneMetrics &). */
template <typename Function>
void write_for_zones(const MainConf &mcf, Family<Output> family, Function value)
{
    for_each_zone(mcf, [&](const Zone &zone, const ZoneMetrics &metrics) {
        family.sample("zone", view(zone.name), value(zone, metrics));
    });
}

/* Writes a sample per store: value(const Store &). */
template <typename Function>
void write_for_stores(const MainConf &mcf, Family<Output> family,
                      Function value)
{
    for_each_store(mcf, [&](std::string_view name, const Store &store) {
        family.sample("store", name, value(store));
    });
}

void write_zone_requests(const MainConf &mcf, Output &text)
{
    Family family(text, "zone_requests_total", "counter",
                  "Requests that met a zone, by what came of them there.");

    for_each_zone(mcf, [&](const Zone &zone, const ZoneMetrics &metrics) {
        for (size_t i = 0; i < kZoneResults; i++) {
            family.sample("zone", view(zone.name), "result",
                          kZoneResultNames[i], metrics.results[i].load());
        }
    });
}

void write_zone_found_used(const MainConf &mcf, Output &text)
{
    Family family(text, "zone_found_used_total", "counter",
                  "Requests by how much of the limit they found used, in per "
                  "cent, or that it refused or would have but for a dry run.");

    for_each_zone(mcf, [&](const Zone &zone, const ZoneMetrics &metrics) {
        for (size_t i = 0; i < kFoundUsed; i++) {
            family.sample("zone", view(zone.name), "share", kFoundUsedNames[i],
                          metrics.found_used[i].load());
        }
    });
}

void write_zone_changes(const MainConf &mcf, Output &text)
{
    Family family(text, "zone_changes_total", "counter",
                  "What operators have changed about clients of a zone here.");

    for_each_zone(mcf, [&](const Zone &zone, const ZoneMetrics &metrics) {
        for (size_t i = 0; i < kZoneChanges; i++) {
            family.sample("zone", view(zone.name), "change",
                          kZoneChangeNames[i], metrics.changes[i].load());
        }
    });
}

void write_zone_max(const MainConf &mcf, Output &text)
{
    Family family(text, "zone_max", "gauge",
                  "What a client may use per window, in the zone's unit, where "
                  "that is one number.");

    for_each_zone(mcf, [&](const Zone &zone, const ZoneMetrics &) {
        if (zone.max != kMaxVaries) {
            family.sample("zone", view(zone.name), zone.max);
        }
    });
}

void write_zone_counters(const MainConf &mcf, Output &text)
{
    static constexpr struct {
        std::string_view name;
        std::string_view help;
        Counter ZoneMetrics::*counter;
    } kCounters[] = {
        {"zone_near_limit_total",
         "Requests that passed with 80 % or more of the limit used.",
         &ZoneMetrics::near_limit},
        {"zone_deny_cache_hits_total",
         "Refusals that needed no question to the store.",
         &ZoneMetrics::deny_cache_hits},
        {"zone_local_decisions_total",
         "Requests that this nginx decided alone because the store failed.",
         &ZoneMetrics::local_decisions},
    };

    for (const auto &each : kCounters) {
        write_for_zones(mcf, {text, each.name, "counter", each.help},
                        [&](const Zone &, const ZoneMetrics &metrics) {
                            return (metrics.*each.counter).load();
                        });
    }
}

void write_zone_clients(const MainConf &mcf, Output &text)
{
    static constexpr struct {
        std::string_view name;
        std::string_view help;
        uint32_t Clients::*number;
    } kGauges[] = {
        {"zone_clients",
         "Different clients in the last full minute, estimated.",
         &Clients::all},
        {"zone_rejected_clients",
         "Different clients that were refused in the last full minute, or "
         "would have been but for a dry run, estimated.",
         &Clients::rejected},
    };

    uint64_t last_minute_s = wall_clock_ms() / 1000 - 60;

    for (const auto &each : kGauges) {
        write_for_zones(mcf, {text, each.name, "gauge", each.help},
                        [&](const Zone &, const ZoneMetrics &metrics) {
                            Clients clients =
                                metrics.minutes.clients_at(last_minute_s);

                            return uint64_t{clients.*each.number};
                        });
    }
}

void write_zone_settlements(const MainConf &mcf, Output &text)
{
    bool are_any = false;
    auto for_each = [&mcf](auto function) {
        for_each_zone(mcf, [&](const Zone &zone, const ZoneMetrics &metrics) {
            if (shows_settlements(zone, metrics)) {
                function(view(zone.name), metrics.settlements);
            }
        });
    };

    for_each([&](std::string_view, const Settlements &) { are_any = true; });

    if (are_any) {
        write_settlements_prometheus(text, for_each);
    }
}

void write_store_durations(const MainConf &mcf, Output &text)
{
    constexpr std::string_view kName =
        "nginx_sliding_limit_store_check_duration_seconds";

    text << "# HELP " << kName
         << " How long checks waited for a store's answer.\n# TYPE " << kName
         << " histogram\n";

    for_each_store(mcf, [&](std::string_view name, const Store &store) {
        const Durations &checks = store.metrics().checks;
        uint64_t count = 0;

        for (size_t i = 0; i < Durations::kBuckets; i++) {
            count += checks.in_bucket(i);
            text << kName << "_bucket{store=\"" << name << "\",le=\"";
            text.seconds(Durations::kBounds[i]) << "\"} " << count << "\n";
        }

        count += checks.in_bucket(Durations::kBuckets);
        text << kName << "_bucket{store=\"" << name << "\",le=\"+Inf\"} "
             << count << "\n"
             << kName << "_sum{store=\"" << name << "\"} ";
        text.seconds(checks.sum_us())
            << "\n"
            << kName << "_count{store=\"" << name << "\"} " << count << "\n";
    });
}

/* When the longest outage of the store began; 0: there is none. */
uint64_t down_since_us(const Store &store)
{
    uint64_t since = 0;
    size_t place = 0;
    Outage outage;

    while (store.next_outage(&place, &outage)) {
        since = since == 0 ? beginning_of(outage)
                           : ngx_min(since, beginning_of(outage));
    }

    return since;
}

void write_store_errors(const MainConf &mcf, Output &text)
{
    Family family(text, "store_errors_total", "counter",
                  "Checks that a store gave no answer to, by reason.");

    for_each_store(mcf, [&](std::string_view name, const Store &store) {
        for (size_t i = 0; i < kStoreErrors; i++) {
            family.sample("store", name, "reason", kStoreErrorNames[i],
                          store.metrics().errors[i].load());
        }
    });
}

void write_store_states(const MainConf &mcf, Output &text)
{
    write_for_stores(
        mcf,
        {text, "store_breakers_open", "gauge",
         "Servers of a store that are regarded as down."},
        [](const Store &store) { return uint64_t{store.breakers_open()}; });

    write_for_stores(
        mcf,
        {text, "store_down_since_seconds", "gauge",
         "When the outage of a store's server began, of several the earliest; "
         "0 if none is down."},
        [](const Store &store) { return down_since_us(store) / 1000000; });

    write_for_stores(
        mcf,
        {text, "store_connects_total", "counter",
         "Connections to a store that were opened."},
        [](const Store &store) { return store.metrics().connects.load(); });

    write_for_stores(mcf,
                     {text, "store_connect_failures_total", "counter",
                      "Connections to a store that could not be opened."},
                     [](const Store &store) {
                         return store.metrics().connect_failures.load();
                     });
}

void write_memory(const MainConf &mcf, Output &text)
{
    MemoryUse use = memory_use(mcf);

    {
        Family family(text, "memory_bytes", "gauge",
                      "Shared memory for counts and remembered refusals.");

        family.sample("state", "used", use.used);
        family.sample("state", "free", use.free);
    }

    Family(text, "memory_clients", "gauge",
           "Clients and remembered refusals in the shared memory.")
        .sample("", use.table.keys);
    Family(text, "memory_evictions_total", "counter",
           "Clients that were forgotten early for want of memory.")
        .sample("", use.table.evictions);
    Family(
        text, "memory_recoveries_total", "counter",
        "Changes that killed workers left unfinished, and that were repaired.")
        .sample("", use.table.recoveries);
}

}  // namespace

void write_prometheus(const MainConf &mcf, Output &text) noexcept
{
    text << "# HELP nginx_sliding_limit_build_info What is running here.\n"
            "# TYPE nginx_sliding_limit_build_info gauge\n"
            "nginx_sliding_limit_build_info{version=\""
         << kVersion << "\",nginx=\"" << NGINX_VERSION << "\",hiredis=\""
         << mcf.hiredis_version << "\",tls=\"" << (mcf.has_tls ? "yes" : "no")
         << "\"} 1\n";

    Family(text, "start_time_seconds", "gauge",
           "When these counters began to count; a reload does not reset them.")
        .sample("", mcf.recorder->metrics()->since_s());

    write_zone_requests(mcf, text);
    write_zone_found_used(mcf, text);
    write_zone_changes(mcf, text);
    write_zone_max(mcf, text);
    write_zone_counters(mcf, text);
    write_zone_clients(mcf, text);
    write_zone_settlements(mcf, text);

    write_store_durations(mcf, text);
    write_store_errors(mcf, text);
    write_store_states(mcf, text);

    Family(text, "checks_in_flight", "gauge",
           "Checks that wait for an answer now.")
        .sample("", mcf.recorder->metrics()->checks_in_flight());

    write_memory(mcf, text);
}

}  // namespace sl
