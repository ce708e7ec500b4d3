#include "metrics/pure/sl_metrics.h"

#include <algorithm>
#include <new>

namespace sl {

namespace {

/* A client that has been away for so long is not in the lists any more. */
constexpr int64_t kIdleMs = 60 * 60 * 1000;

/* Each zone tells the log of persistent clients this often at most. */
constexpr int64_t kTellEveryMs = 10000;

int64_t idle_ms(int64_t window_ms)
{
    return std::max(kIdleMs, 2 * window_ms);
}

size_t rounded(size_t size)
{
    return (size + 63) / 64 * 64;
}

}  // namespace

Tally ZoneMetrics::tally() const noexcept
{
    auto of = [this](ZoneResult result) {
        return results[static_cast<size_t>(result)].load(
            std::memory_order_relaxed);
    };

    return Tally{of(ZoneResult::kPassed) + of(ZoneResult::kRejectedDryRun),
                 of(ZoneResult::kRejected) + of(ZoneResult::kBanned),
                 of(ZoneResult::kRejectedDryRun),
                 of(ZoneResult::kFailedOpen) + of(ZoneResult::kFailedClosed)};
}

void ZoneMetrics::record(const ZoneEvent &event, uint64_t hash, int64_t now_ms,
                         int64_t window_ms, Persistent *persistent) noexcept
{
    auto now_s = static_cast<uint64_t>(now_ms / 1000);
    auto so_far = [this] {
        return tally();
    };
    bool is_over_limit = event.result == ZoneResult::kRejected
                         || event.result == ZoneResult::kRejectedDryRun;
    bool is_rejected = is_over_limit || event.result == ZoneResult::kBanned;

    persistent->windows = 0;

    minutes.enter(now_s, so_far);
    hours.enter(now_s, so_far);

    add(results[static_cast<size_t>(event.result)]);

    if (event.found < kFoundUsed) {
        add(found_used[event.found]);
    }

    if (event.is_near_limit) {
        add(near_limit);
    }

    if (event.is_from_deny_cache) {
        add(deny_cache_hits);
    }

    if (event.is_local) {
        add(local_decisions);
    }

    /* whoever is exempt is no client of the zone */
    if (event.result == ZoneResult::kExempt) {
        return;
    }

    minutes.add_client(hash, is_rejected);
    hours.add_client(hash, is_rejected);

    if (!top_lock_.lock()) {
        return;
    }

    top_clients_.count(hash, event.key, now_ms, idle_ms(window_ms));

    if (is_rejected) {
        TopClient &client =
            top_rejected_.count(hash, event.key, now_ms, idle_ms(window_ms));

        if (is_over_limit && persists(&client, now_ms / window_ms)
            && may_tell(now_ms)) {
            persistent->windows = client.windows_in_a_row;
            persistent->refused = client.count;
            persistent->masked_size = mask_key(client, persistent->masked);
            told(&client);
        }
    }

    top_lock_.unlock();
}

bool ZoneMetrics::may_tell(int64_t now_ms) noexcept
{
    int64_t last = told_ms_.load();

    if (last != 0 && now_ms >= last && last > now_ms - kTellEveryMs) {
        return false;
    }

    told_ms_ = now_ms;

    return true;
}

void ZoneMetrics::read_top(int64_t now_ms, int64_t window_ms, Top *clients,
                           Top *rejected) noexcept
{
    clients->count = 0;
    rejected->count = 0;

    if (!top_lock_.lock()) {
        return;
    }

    clients->count = top_clients_.read(now_ms, idle_ms(window_ms),
                                       clients->clients, kTopShown);
    rejected->count = top_rejected_.read(now_ms, idle_ms(window_ms),
                                         rejected->clients, kTopShown);
    top_lock_.unlock();
}

bool WorkerMetrics::enter() noexcept
{
    if (!life_.try_lock()) {
        return false;
    }

    checks_in_flight = 0;

    return true;
}

void WorkerMetrics::leave() noexcept
{
    checks_in_flight = 0;
    life_.unlock();
}

int64_t WorkerMetrics::checks_of_the_living() noexcept
{
    /* most places have none, and need not be tried; if this one can be had, the
     * worker is dead, and has left what it counted */
    if (checks_in_flight.load() != 0 && enter()) {
        leave();
    }

    return checks_in_flight.load();
}

size_t Metrics::size_for(size_t zones, size_t stores) noexcept
{
    return rounded(sizeof(Metrics)) + zones * sizeof(ZonePlace)
           + stores * sizeof(StorePlace);
}

Metrics *Metrics::format(void *memory, size_t zones, size_t stores,
                         const uint8_t (&secret)[kSipHashKeySize],
                         int64_t now_s) noexcept
{
    auto *metrics = static_cast<Metrics *>(memory);

    std::copy(std::begin(secret), std::end(secret), metrics->secret_);
    metrics->since_s_ = now_s;
    metrics->zone_count_ = zones;
    metrics->store_count_ = stores;

    for (size_t i = 0; i < zones; i++) {
        metrics->zones()[i].data.init();
    }

    for (WorkerMetrics &worker : metrics->workers_) {
        worker.init();
    }

    return metrics;
}

Metrics::ZonePlace *Metrics::zones() noexcept
{
    return reinterpret_cast<ZonePlace *>(reinterpret_cast<uint8_t *>(this)
                                         + rounded(sizeof(Metrics)));
}

Metrics::StorePlace *Metrics::stores() noexcept
{
    return reinterpret_cast<StorePlace *>(zones() + zone_count_);
}

bool Metrics::Name::is(std::string_view name) const noexcept
{
    /* never trust what a killed process may have left */
    return std::string_view(text, std::min<size_t>(size.load(), sizeof(text)))
           == name;
}

/* Called before workers start, so nobody else looks for a place meanwhile. */
template <typename Place>
auto Metrics::find(Place *places, size_t count, std::string_view name) noexcept
    -> decltype(&places->data)
{
    for (size_t i = 0; i < count; i++) {
        Name &owner = places[i].name;

        if (owner.size.load() == 0) {
            owner.size = static_cast<uint32_t>(
                name.copy(owner.text, sizeof(owner.text)));
        }

        if (owner.is(name.substr(0, sizeof(owner.text)))) {
            return &places[i].data;
        }
    }

    return nullptr;
}

ZoneMetrics *Metrics::zone(std::string_view name) noexcept
{
    return find(zones(), zone_count_, name);
}

StoreMetrics *Metrics::store(std::string_view name) noexcept
{
    return find(stores(), store_count_, name);
}

WorkerMetrics *Metrics::enter() noexcept
{
    for (WorkerMetrics &worker : workers_) {
        if (worker.enter()) {
            return &worker;
        }
    }

    return nullptr;
}

int64_t Metrics::checks_in_flight() noexcept
{
    uint64_t sum = 0;

    for (WorkerMetrics &worker : workers_) {
        sum += static_cast<uint64_t>(worker.checks_of_the_living());
    }

    return static_cast<int64_t>(sum);
}

uint64_t Metrics::hash_of(std::string_view key) const noexcept
{
    return siphash64(key, secret_);
}

}  // namespace sl
