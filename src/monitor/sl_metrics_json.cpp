#include "monitor/sl_metrics_json.h"

#include "base/sl_version.h"
#include "monitor/pure/sl_settlements_text.h"
#include "monitor/sl_json_pieces.h"
#include "monitor/sl_metrics_walk.h"

namespace sl {

namespace {

template <size_t N>
void write_counters(const std::string_view (&names)[N],
                    const Counter (&counters)[N], Output &text)
{
    Commas commas(text);

    text << "{";

    for (size_t i = 0; i < N; i++) {
        commas.next() << "\"" << names[i] << "\":" << counters[i].load();
    }

    text << "}";
}

template <size_t N>
void write_numbers(const Counter (&counters)[N], Output &text)
{
    Commas commas(text);

    text << "[";

    for (const Counter &counter : counters) {
        commas.next() << counter.load();
    }

    text << "]";
}

template <typename History>
void write_history(const History &history, const ZoneMetrics &metrics,
                   Output &text)
{
    Period periods[History::kLength];
    size_t count =
        history.read(wall_clock_ms() / 1000, metrics.tally(), periods);
    Commas commas(text);

    text << "[";

    for (size_t i = 0; i < count; i++) {
        const Period &period = periods[i];
        const Tally &tally = period.tally;

        commas.next() << "[" << period.begin_s << "," << tally.passed << ","
                      << tally.rejected << "," << tally.rejected_dry_run << ","
                      << tally.failed << "," << uint64_t{period.clients.all}
                      << "," << uint64_t{period.clients.rejected} << "]";
    }

    text << "]";
}

void write_key(const TopClient &client, KeysShown keys, Output &text)
{
    if (keys == kMaskedKeys) {
        char masked[kMaxMaskedKey];
        size_t size = mask_key(client, masked);

        text.json_string({masked, size});
        return;
    }

    char shown[sizeof(client.key) + kKeyMark];
    size_t size = client.text().copy(shown, sizeof(client.key));

    /* only the beginning of a long key is known, which others may share */
    if (client.is_cut) {
        mark_key(client, shown + size);
        size += kKeyMark;
    }

    text.json_string({shown, size});
}

void write_top(const ZoneMetrics::Top &top, KeysShown keys, Output &text)
{
    Commas commas(text);

    text << "[";

    bool are_shown = keys == kMaskedKeys || keys == kPlainKeys;

    for (size_t i = 0; are_shown && i < top.count; i++) {
        const TopClient &client = top.clients[i];

        commas.next() << "{\"key\":";
        write_key(client, keys, text);
        text << ",\"count\":" << client.count
             << ",\"missed_at_most\":" << client.missed_at_most
             << ",\"first\":";
        text.seconds(static_cast<uint64_t>(client.first_ms) * 1000)
            << ",\"last\":";
        text.seconds(static_cast<uint64_t>(client.last_ms) * 1000) << "}";
    }

    text << "]";
}

void write_zone(const Zone &zone, ZoneMetrics &metrics, KeysShown keys,
                Output &text)
{
    text << "{\"name\":";
    text.json_string(view(zone.name)) << ",\"max\":";
    write_max(zone, text);
    text << ",\"unit\":";
    text.json_string(view(zone.unit)) << ",\"window\":";
    text.seconds(zone.window * 1000) << ",\"store\":";
    text.json_string(store_name(zone)) << ",\"requests\":";
    write_counters(kZoneResultNames, metrics.results, text);
    text << ",\"found_used\":";
    write_numbers(metrics.found_used, text);
    text << ",\"changes\":";
    write_counters(kZoneChangeNames, metrics.changes, text);
    text << ",\"near_limit\":" << metrics.near_limit.load()
         << ",\"deny_cache_hits\":" << metrics.deny_cache_hits.load()
         << ",\"local_decisions\":" << metrics.local_decisions.load();

    if (shows_settlements(zone, metrics)) {
        text << ",\"settled\":";
        write_settlements_json(metrics.settlements, text);
    }

    text << ",\"minutes\":";
    write_history(metrics.minutes, metrics, text);
    text << ",\"hours\":";
    write_history(metrics.hours, metrics, text);

    ZoneMetrics::Top clients;
    ZoneMetrics::Top rejected;

    metrics.read_top(static_cast<int64_t>(wall_clock_ms()),
                     static_cast<int64_t>(zone.window), &clients, &rejected);
    text << ",\"top_rejected\":";
    write_top(rejected, keys, text);
    text << ",\"top_clients\":";
    write_top(clients, keys, text);
    text << "}";
}

void write_outages(const Store &store, Output &text)
{
    Commas commas(text);
    size_t place = 0;
    Outage outage;

    text << "[";

    while (store.next_outage(&place, &outage)) {
        commas.next() << "{\"server\":";
        text.json_string(outage.server().empty() ? store.address()
                                                 : outage.server())
            << ",\"since\":";
        text.seconds(beginning_of(outage)) << ",\"reason\":";
        text.json_string(outage.reason()) << "}";
    }

    text << "]";
}

void write_store(std::string_view name, const Store &store, Output &text)
{
    const StoreMetrics &metrics = store.metrics();
    const Durations &checks = metrics.checks;

    text << "{\"name\":";
    text.json_string(name) << ",\"kind\":";
    text.json_string(store.kind()) << ",\"address\":";
    text.json_string(store.address())
        << ",\"breakers_open\":" << uint64_t{store.breakers_open()}
        << ",\"down\":";
    write_outages(store, text);
    text << ",\"connects\":" << metrics.connects.load()
         << ",\"connect_failures\":" << metrics.connect_failures.load()
         << ",\"errors\":";
    write_counters(kStoreErrorNames, metrics.errors, text);

    Commas commas(text);
    uint64_t count = 0;

    text << ",\"duration\":{\"buckets\":[";

    for (size_t i = 0; i < Durations::kBuckets; i++) {
        count += checks.in_bucket(i);
        commas.next() << "[";
        text.seconds(Durations::kBounds[i]) << "," << count << "]";
    }

    count += checks.in_bucket(Durations::kBuckets);
    text << "],\"count\":" << count << ",\"sum\":";
    text.seconds(checks.sum_us()) << "}}";
}

std::string_view name_of(KeysShown keys)
{
    return keys == kMaskedKeys  ? "masked"
           : keys == kPlainKeys ? "plain"
                                : "off";
}

}  // namespace

void write_json(const MainConf &mcf, const LocationConf &lcf,
                Output &text) noexcept
{
    auto keys = static_cast<KeysShown>(lcf.metrics.keys_shown);
    ngx_str_t host{ngx_cycle->hostname.len, ngx_cycle->hostname.data};

    text << "{\"host\":";
    text.json_string(view(host))
        << ",\"version\":\"" << kVersion << "\",\"nginx\":\"" << NGINX_VERSION
        << "\",\"hiredis\":\"" << mcf.hiredis_version
        << "\",\"tls\":" << (mcf.has_tls ? "true" : "false") << ",\"now\":";
    text.seconds(wall_clock_ms() * 1000)
        << ",\"since\":" << mcf.recorder->metrics()->since_s() << ",\"keys\":\""
        << name_of(keys)
        << "\",\"admin\":" << (lcf.metrics.is_admin ? "true" : "false")
        << ",\"checks_in_flight\":"
        << mcf.recorder->metrics()->checks_in_flight() << ",\"zones\":[";

    Commas zones(text);

    for_each_zone(mcf, [&](const Zone &zone, ZoneMetrics &metrics) {
        zones.next();
        write_zone(zone, metrics, keys, text);
    });

    text << "],\"stores\":[";

    Commas stores(text);

    for_each_store(mcf, [&](std::string_view name, const Store &store) {
        stores.next();
        write_store(name, store, text);
    });

    MemoryUse use = memory_use(mcf);

    text << "],\"memory\":{\"used\":" << use.used << ",\"free\":" << use.free
         << ",\"clients\":" << use.table.keys
         << ",\"evictions\":" << use.table.evictions
         << ",\"recoveries\":" << use.table.recoveries << "}}\n";
}

}  // namespace sl
