/* Finds what there is to show, whatever format it is written in. */

#pragma once

#include "request/sl_recording.h"

namespace sl {

/* Calls function(const Zone &, ZoneMetrics &) for each zone that is counted. */
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

/* Of zones whose limits settle nothing, and never did, nobody wants to know how
 * much that was. */
inline bool shows_settlements(const Zone &zone,
                              const ZoneMetrics &metrics) noexcept
{
    return zone.settles || metrics.settlements.are_any();
}

/*
 * Calls function(std::string_view name, const Store &) for each store that is
 * counted, that of the memory last.
 */
template <typename Function>
void for_each_store(const MainConf &mcf, Function function)
{
    for (const NamedStore &named : elements<NamedStore>(mcf.stores)) {
        if (named.store->is_counted()) {
            function(view(named.name), *named.store);
        }
    }

    function(kMemoryStore, *mcf.memory);
}

/* The name of the store that counts for the zone. */
inline std::string_view store_name(const Zone &zone) noexcept
{
    return zone.store->kind() == kMemoryStore ? kMemoryStore
                                              : view(zone.store_name);
}

/* When the outage began, in microseconds since 1970. */
inline uint64_t beginning_of(const Outage &outage) noexcept
{
    return (wall_clock_ms() - static_cast<uint64_t>(outage.for_ms)) * 1000;
}

/* Bytes of the shared memory, and what is in it. */
struct MemoryUse {
    uint64_t used;
    uint64_t free;
    TableStats table;
};

inline MemoryUse memory_use(const MainConf &mcf) noexcept
{
    constexpr uint64_t kCell = MemoryTable::kCellSize;

    TableStats stats = mcf.table->stats();

    return MemoryUse{(stats.cells - stats.free_cells) * kCell,
                     stats.free_cells * kCell, stats};
}

}  // namespace sl
