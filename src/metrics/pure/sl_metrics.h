/*
 * What all workers count together, for operators to see: in a piece of shared
 * memory of a fixed size, with a place for every zone and every store. A place
 * is found by name, so that it is still there after a reload.
 *
 * Counting is a few atomic additions. Only the lists of clients need a lock,
 * one per zone, which is never held for longer than it takes to look through 64
 * of them.
 *
 * What workers write here is not trusted by whoever reads it: whatever bytes a
 * killed one leaves, numbers may be wrong, but nobody leaves the memory. What
 * is written before there are workers is: locks, the secret, how many places.
 */

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/pure/sl_process_lock.h"
#include "base/pure/sl_siphash.h"
#include "metrics/pure/sl_found_used.h"
#include "metrics/pure/sl_history.h"
#include "metrics/pure/sl_settlements.h"
#include "metrics/pure/sl_top_list.h"
#include "store/pure/sl_store_metrics.h"
#include "store/pure/sl_zone_name.h"

namespace sl {

/* What came of a request in a zone; one macro, so that a value and its name
 * cannot part. */
#define SL_ZONE_RESULTS(X)                                                     \
    X(kPassed, "passed")                                                       \
    X(kRejected, "rejected")                                                   \
    X(kBanned, "banned")                                                       \
    X(kRejectedDryRun, "rejected_dry_run")                                     \
    X(kRejectedElsewhere, "rejected_elsewhere") /* by another zone */          \
    X(kFailedOpen, "failed_open")                                              \
    X(kFailedClosed, "failed_closed")                                          \
    X(kExempt, "exempt")                                                       \
    X(kAborted, "aborted") /* the client did not wait for it */

/* What an operator has changed about a client of a zone, in the same way. */
#define SL_ZONE_CHANGES(X)                                                     \
    X(kForgotten, "forgotten")                                                 \
    X(kBanned, "banned")                                                       \
    X(kUnbanned, "unbanned")                                                   \
    X(kOverridden, "overridden")                                               \
    X(kOverrideLifted, "override_lifted")

#define SL_VALUE(value, name) value,
#define SL_NAME(value, name) name,
#define SL_COUNT(value, name) +1

enum class ZoneResult : size_t { SL_ZONE_RESULTS(SL_VALUE) };

constexpr size_t kZoneResults = 0 SL_ZONE_RESULTS(SL_COUNT);

constexpr std::string_view kZoneResultNames[] = {SL_ZONE_RESULTS(SL_NAME)};

enum class ZoneChange : size_t { SL_ZONE_CHANGES(SL_VALUE) };

constexpr size_t kZoneChanges = 0 SL_ZONE_CHANGES(SL_COUNT);

constexpr std::string_view kZoneChangeNames[] = {SL_ZONE_CHANGES(SL_NAME)};

#undef SL_VALUE
#undef SL_NAME
#undef SL_COUNT

/* What a zone has to say about one request. */
struct ZoneEvent {
    ZoneResult result;
    size_t found; /* a counter of found_used, or kFoundNothing */
    bool is_near_limit;
    bool is_from_deny_cache;
    bool is_local;
    std::string_view key;
};

/* A client that has been over its limit for several windows in a row. */
struct Persistent {
    uint32_t windows; /* 0 if there is no such client */
    uint64_t refused;
    char masked[kMaxMaskedKey];
    size_t masked_size;
};

class ZoneMetrics {
  public:
    static constexpr size_t kTopShown = 20;

    struct Top {
        TopClient clients[kTopShown];
        size_t count;
    };

    /* To be called on memory that is all zero, where no other process is yet.
     */
    void init() noexcept { top_lock_.init(); }

    /* Counts a request. `*persistent` is a client that the log is to be told
     * of. */
    void record(const ZoneEvent &event, uint64_t hash, int64_t now_ms,
                int64_t window_ms, Persistent *persistent) noexcept;

    /* Counts what a request has cost after all. */
    void record(const Settlement &settlement) noexcept
    {
        settlements.add(settlement);
    }

    Tally tally() const noexcept;

    Counter results[kZoneResults];
    Counter found_used[kFoundUsed];
    Counter near_limit;
    Counter deny_cache_hits;
    Counter local_decisions;
    Counter changes[kZoneChanges];

    MinuteHistory minutes;
    HourHistory hours;

    Settlements settlements;

    void read_top(int64_t now_ms, int64_t window_ms, Top *clients,
                  Top *rejected) noexcept;

  private:
    bool may_tell(int64_t now_ms) noexcept;

    /* When the log was last told of a persistent client. */
    std::atomic<int64_t> told_ms_;

    ProcessLock top_lock_;
    TopList top_clients_;
    TopList top_rejected_;
};

/*
 * A worker's place, and what it does now. The place is held by a lock that its
 * worker keeps for its life, so that the kernel knows whether it lives.
 */
class WorkerMetrics {
  public:
    void init() noexcept { life_.init(); }

    /* False if a living worker has this place. */
    bool enter() noexcept;
    void leave() noexcept;

    /* 0 if the worker is dead. */
    int64_t checks_of_the_living() noexcept;

    std::atomic<int64_t> checks_in_flight;

  private:
    ProcessLock life_;
};

class Metrics {
  public:
    /* How many bytes so many zones and stores need. */
    static size_t size_for(size_t zones, size_t stores) noexcept;

    /* `memory` is all zero, aligned to 64, of size_for() bytes. */
    static Metrics *format(void *memory, size_t zones, size_t stores,
                           const uint8_t (&secret)[kSipHashKeySize],
                           int64_t now_s) noexcept;

    /* The place of that name, or a free one; nullptr if there is none. */
    ZoneMetrics *zone(std::string_view name) noexcept;
    StoreMetrics *store(std::string_view name) noexcept;

    /*
     * A place for the process that calls, until it dies or leaves it; nullptr
     * if there is none. To be called by the worker itself, because a child that
     * is forked does not keep it.
     */
    WorkerMetrics *enter() noexcept;

    /* The sum of all workers that live. */
    int64_t checks_in_flight() noexcept;

    uint64_t hash_of(std::string_view key) const noexcept;

    /* When counting began. */
    int64_t since_s() const noexcept { return since_s_; }

  private:
    /* As many processes as nginx can have, with those that a reload replaces.
     */
    static constexpr size_t kWorkers = 1024;

    struct Name {
        char text[kMaxZoneName];
        std::atomic<uint32_t> size; /* 0 if the place is free */

        bool is(std::string_view name) const noexcept;
    };

    template <typename Place>
    static auto find(Place *places, size_t count,
                     std::string_view name) noexcept -> decltype(&places->data);

    struct alignas(64) ZonePlace {
        Name name;
        alignas(64) ZoneMetrics data;
    };

    struct alignas(64) StorePlace {
        Name name;
        alignas(64) StoreMetrics data;
    };

    ZonePlace *zones() noexcept;
    StorePlace *stores() noexcept;

    uint8_t secret_[kSipHashKeySize];
    int64_t since_s_;
    size_t zone_count_;
    size_t store_count_;
    WorkerMetrics workers_[kWorkers];
};

}  // namespace sl
