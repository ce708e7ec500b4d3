/*
 * What zones say about settled requests, as JSON and for Prometheus. `Text` is
 * an Output, or whatever else takes texts and numbers by <<.
 */

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "metrics/pure/sl_settlements.h"
#include "monitor/pure/sl_prometheus_family.h"

namespace sl {

/* Writes an object. */
template <typename Text>
void write_settlements_json(const Settlements &settlements, Text &text)
{
    uint64_t count = 0;

    text << "{\"requests\":{";

    for (size_t i = 0; i < kSettled; i++) {
        text << (i > 0 ? ",\"" : "\"") << kSettledNames[i]
             << "\":" << settlements.requests[i].load();
    }

    text << "},\"reserved\":" << settlements.reserved.load()
         << ",\"entered\":" << settlements.entered.load()
         << ",\"given_back\":" << settlements.given_back.load()
         << ",\"cost\":{\"buckets\":[";

    for (size_t i = 0; i < Settlements::kBuckets; i++) {
        count += settlements.in_bucket(i);
        text << (i > 0 ? ",[" : "[") << Settlements::kBounds[i] << "," << count
             << "]";
    }

    count += settlements.in_bucket(Settlements::kBuckets);
    text << "],\"count\":" << count << ",\"sum\":" << settlements.sum() << "}}";
}

template <typename Text>
void write_costs(std::string_view name, std::string_view zone,
                 const Settlements &settlements, Text &text)
{
    uint64_t count = 0;
    auto write = [&](std::string_view suffix) -> Text & {
        return text << "nginx_sliding_limit_" << name << suffix << "{zone=\""
                    << zone << "\"";
    };

    for (size_t i = 0; i < Settlements::kBuckets; i++) {
        count += settlements.in_bucket(i);
        write("_bucket") << ",le=\"" << Settlements::kBounds[i] << "\"} "
                         << count << "\n";
    }

    count += settlements.in_bucket(Settlements::kBuckets);
    write("_bucket") << ",le=\"+Inf\"} " << count << "\n";
    write("_sum") << "} " << settlements.sum() << "\n";
    write("_count") << "} " << count << "\n";
}

/* `for_each(function)` calls function(std::string_view zone, const Settlements
 * &) for each zone that has something to say. If there is one. */
template <typename Text, typename ForEach>
void write_settlements_prometheus(Text &text, ForEach for_each)
{
    constexpr std::string_view kCosts = "zone_request_cost";

    static constexpr struct {
        std::string_view name;
        std::string_view help;
        Counter Settlements::*counter;
    } kUnits[] = {
        {"zone_reserved_units_total",
         "What requests that were settled had reserved when they came.",
         &Settlements::reserved},
        {"zone_entered_units_total",
         "What requests turned out to cost beyond what they had reserved.",
         &Settlements::entered},
        {"zone_given_back_units_total",
         "What requests had reserved and turned out not to cost.",
         &Settlements::given_back},
    };

    {
        Family family(text, "zone_settlements_total", "counter",
                      "Requests that were settled, by whether they cost more "
                      "than they had reserved, less, just that, or nobody "
                      "said.");

        for_each([&](std::string_view zone, const Settlements &settlements) {
            for (size_t i = 0; i < kSettled; i++) {
                family.sample("zone", zone, "direction", kSettledNames[i],
                              settlements.requests[i].load());
            }
        });
    }

    for (const auto &each : kUnits) {
        Family family(text, each.name, "counter", each.help);

        for_each([&](std::string_view zone, const Settlements &settlements) {
            family.sample("zone", zone, (settlements.*each.counter).load());
        });
    }

    Family family(text, kCosts, "histogram",
                  "What requests that were settled cost.");

    for_each([&](std::string_view zone, const Settlements &settlements) {
        write_costs(kCosts, zone, settlements, text);
    });
}

}  // namespace sl
