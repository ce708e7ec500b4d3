#include "monitor/sl_metrics_text.h"

#include "base/sl_version.h"
#include "request/sl_recording.h"

namespace sl {

namespace {

template <typename Function>
void for_each_zone(const MainConf &mcf, Function function)
{
    for (const Zone *zone : elements<Zone *>(mcf.zones)) {
        ZoneMetrics *metrics = mcf.recorder->zone(*zone);

        if (metrics != nullptr) {
            function(*zone, *metrics);
        }
    }
}

template <typename Function>
void for_each_store(const MainConf &mcf, Function function)
{
    auto *stores = static_cast<NamedStore *>(mcf.stores.elts);

    for (ngx_uint_t i = 0; i < mcf.stores.nelts; i++) {
        if (stores[i].store->is_counted()) {
            function(view(stores[i].name), *stores[i].store);
        }
    }

    function(kMemoryStore, *mcf.memory);
}

/* Since when, in microseconds since 1970. */
uint64_t beginning_of(const Outage &outage)
{
    return (wall_clock_ms() - static_cast<uint64_t>(outage.for_ms)) * 1000;
}

/* ---- Prometheus ---- */

/* One family: its help and type, and then its samples. */
class Family {
  public:
    Family(Output &text, std::string_view name, std::string_view type,
           std::string_view help) noexcept
        : text_(text), name_(name)
    {
        text << "# HELP nginx_sliding_limit_" << name << " " << help
             << "\n# TYPE nginx_sliding_limit_" << name << " " << type << "\n";
    }

    /* Names of zones and stores need no escaping: the configuration allows
     * nothing else than letters, digits and a few signs. */
    template <typename Value>
    void sample(std::string_view labels, Value value) noexcept
    {
        text_ << "nginx_sliding_limit_" << name_ << labels << " " << value
              << "\n";
    }

    template <typename Value>
    void sample(std::string_view label, std::string_view of,
                Value value) noexcept
    {
        text_ << "nginx_sliding_limit_" << name_ << "{" << label << "=\"" << of
              << "\"} " << value << "\n";
    }

    template <typename Value>
    void sample(std::string_view label, std::string_view of,
                std::string_view second_label, std::string_view of_second,
                Value value) noexcept
    {
        text_ << "nginx_sliding_limit_" << name_ << "{" << label << "=\"" << of
              << "\"," << second_label << "=\"" << of_second << "\"} " << value
              << "\n";
    }

  private:
    Output &text_;
    std::string_view name_;
};

void write_zones(const MainConf &mcf, Output &text)
{
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

    {
        Family family(text, "zone_max", "gauge",
                      "Requests that a client may make per window, where that "
                      "is one number.");

        for_each_zone(mcf, [&](const Zone &zone, const ZoneMetrics &) {
            if (zone.max != kMaxVaries) {
                family.sample("zone", view(zone.name), zone.max);
            }
        });
    }

    struct Plain {
        std::string_view name;
        std::string_view help;
        Counter ZoneMetrics::*counter;
    };

    static constexpr Plain kPlain[] = {
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

    for (const Plain &plain : kPlain) {
        Family family(text, plain.name, "counter", plain.help);

        for_each_zone(mcf, [&](const Zone &zone, const ZoneMetrics &metrics) {
            family.sample("zone", view(zone.name),
                          (metrics.*plain.counter).load());
        });
    }

    struct Gauge {
        std::string_view name;
        std::string_view help;
        uint32_t Clients::*value;
    };

    static constexpr Gauge kGauges[] = {
        {"zone_clients",
         "Different clients in the last full minute, estimated.",
         &Clients::all},
        {"zone_rejected_clients",
         "Different clients refused in the last full minute, or only by a "
         "dry run, estimated.",
         &Clients::rejected},
    };

    uint64_t last_minute_s = wall_clock_ms() / 1000 - 60;

    for (const Gauge &gauge : kGauges) {
        Family family(text, gauge.name, "gauge", gauge.help);

        for_each_zone(mcf, [&](const Zone &zone, const ZoneMetrics &metrics) {
            Clients clients = metrics.minutes.clients_at(last_minute_s);

            family.sample("zone", view(zone.name),
                          uint64_t{clients.*gauge.value});
        });
    }
}

void write_durations(const MainConf &mcf, Output &text)
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

/* The longest of its outages; 0: there is none. */
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

void write_stores(const MainConf &mcf, Output &text)
{
    write_durations(mcf, text);

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

    {
        Family family(text, "store_breakers_open", "gauge",
                      "Servers of a store that are regarded as down.");

        for_each_store(mcf, [&](std::string_view name, const Store &store) {
            family.sample("store", name, uint64_t{store.breakers_open()});
        });
    }

    {
        Family family(text, "store_down_since_seconds", "gauge",
                      "Since when a server of a store has been down, the "
                      "longest of them; 0: none is.");

        for_each_store(mcf, [&](std::string_view name, const Store &store) {
            family.sample("store", name, down_since_us(store) / 1000000);
        });
    }

    struct Plain {
        std::string_view name;
        std::string_view help;
        Counter StoreMetrics::*counter;
    };

    static constexpr Plain kPlain[] = {
        {"store_connects_total", "Connections to a store that were opened.",
         &StoreMetrics::connects},
        {"store_connect_failures_total",
         "Connections to a store that could not be opened.",
         &StoreMetrics::connect_failures},
    };

    for (const Plain &plain : kPlain) {
        Family family(text, plain.name, "counter", plain.help);

        for_each_store(mcf, [&](std::string_view name, const Store &store) {
            family.sample("store", name,
                          (store.metrics().*plain.counter).load());
        });
    }
}

/* ---- both ---- */

struct MemoryUse {
    uint64_t used;
    uint64_t free;
    TableStats table;
};

MemoryUse memory_use(const MainConf &mcf)
{
    constexpr uint64_t kCell = MemoryTable::kCellSize;

    TableStats stats = mcf.table->stats();

    return MemoryUse{(stats.cells - stats.free_cells) * kCell,
                     stats.free_cells * kCell, stats};
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
    Family(text, "memory_recoveries_total", "counter",
           "Killed workers whose half done change was repaired.")
        .sample("", use.table.recoveries);
}

/* ---- JSON ---- */

/* Members of an object or elements of an array, with commas between them. */
class Commas {
  public:
    explicit Commas(Output &text) noexcept : text_(text), is_first_(true) {}

    Output &next() noexcept
    {
        if (!is_first_) {
            text_ << ",";
        }

        is_first_ = false;

        return text_;
    }

  private:
    Output &text_;
    bool is_first_;
};

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

    /* of a long one only the beginning is known, and that others may share */
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

    if (zone.max == kMaxVaries) {
        text << "\"varies\"";
    } else {
        text << zone.max;
    }

    text << ",\"window\":";
    text.seconds(zone.window * 1000) << ",\"store\":";
    text.json_string(view(zone.store->kind() == kMemoryStore ? str(kMemoryStore)
                                                             : zone.store_name))
        << ",\"requests\":";
    write_counters(kZoneResultNames, metrics.results, text);
    text << ",\"near_limit\":" << metrics.near_limit.load()
         << ",\"deny_cache_hits\":" << metrics.deny_cache_hits.load()
         << ",\"local_decisions\":" << metrics.local_decisions.load()
         << ",\"minutes\":";
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

void write_prometheus(const MainConf &mcf, Output &text) noexcept
{
    text << "# HELP nginx_sliding_limit_build_info What is running here.\n"
            "# TYPE nginx_sliding_limit_build_info gauge\n"
            "nginx_sliding_limit_build_info{version=\""
         << kVersion << "\",nginx=\"" << NGINX_VERSION << "\",hiredis=\""
         << mcf.hiredis_version << "\",tls=\"" << (mcf.has_tls ? "yes" : "no")
         << "\"} 1\n";

    Family(text, "start_time_seconds", "gauge",
           "Since when these counters count; a reload does not reset them.")
        .sample("", mcf.recorder->metrics()->since_s());

    write_zones(mcf, text);
    write_stores(mcf, text);

    Family(text, "checks_in_flight", "gauge",
           "Checks that wait for an answer now.")
        .sample("", mcf.recorder->metrics()->checks_in_flight());

    write_memory(mcf, text);
}

void write_json(const MainConf &mcf, KeysShown keys, Output &text) noexcept
{
    ngx_str_t host{ngx_cycle->hostname.len, ngx_cycle->hostname.data};

    text << "{\"host\":";
    text.json_string(view(host))
        << ",\"version\":\"" << kVersion << "\",\"nginx\":\"" << NGINX_VERSION
        << "\",\"hiredis\":\"" << mcf.hiredis_version
        << "\",\"tls\":" << (mcf.has_tls ? "true" : "false") << ",\"now\":";
    text.seconds(wall_clock_ms() * 1000)
        << ",\"since\":" << mcf.recorder->metrics()->since_s() << ",\"keys\":\""
        << name_of(keys) << "\",\"checks_in_flight\":"
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
