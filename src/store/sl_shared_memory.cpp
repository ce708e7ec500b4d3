#include "store/sl_shared_memory.h"

#include <new>

#include "base/sl_random.h"

namespace sl {

namespace {

/* That memory is short is logged this often at most, by each worker. */
constexpr ngx_msec_t kReportEveryMs = 10000;

/* A reload may add so many to those that there were at the start. */
constexpr size_t kSpareZones = 16;
constexpr size_t kSpareStores = 8;

/* Metrics take one part in so many of the memory at most. */
constexpr size_t kShareOfMetrics = 4;

ngx_slab_pool_t *pool_of(ngx_shm_zone_t *zone)
{
    return reinterpret_cast<ngx_slab_pool_t *>(zone->shm.addr);
}

}  // namespace

SharedMemory *SharedMemory::create(ngx_conf_t *cf, size_t size,
                                   const Measured &measured) noexcept
{
    ngx_str_t name = ngx_string("sliding_limit");
    ngx_shm_zone_t *zone =
        ngx_shared_memory_add(cf, &name, size, &ngx_http_sliding_limit_module);
    void *memory = ngx_palloc(cf->pool, sizeof(SharedMemory));

    if (zone == nullptr || memory == nullptr) {
        return nullptr;
    }

    auto *shared = new (memory) SharedMemory(zone, measured);

    zone->init = init;
    zone->data = shared;

    return shared;
}

SharedMemory::SharedMemory(ngx_shm_zone_t *zone,
                           const Measured &measured) noexcept
    : zone_(zone), measured_(measured), reported_evictions_(0), reported_at_(0)
{}

size_t SharedMemory::size_with_metrics(size_t zones, size_t stores) noexcept
{
    return kShareOfMetrics * Metrics::size_for(zones, stores);
}

SharedMemory::Contents &SharedMemory::contents_of(ngx_shm_zone_t *zone) noexcept
{
    return *static_cast<Contents *>(pool_of(zone)->data);
}

SharedMemory::Locked SharedMemory::locked() const noexcept
{
    return {&pool_of(zone_)->mutex, contents_of(zone_)};
}

RefusalMarks &SharedMemory::refusal_marks() const noexcept
{
    return contents_of(zone_).refusal_marks;
}

Metrics *SharedMemory::metrics() const noexcept
{
    return contents_of(zone_).metrics;
}

/* Makes places to spare, too, as far as they fit; nullptr if not even those
 * that are needed do. */
Metrics *SharedMemory::make_metrics(ngx_slab_pool_t *pool) const noexcept
{
    size_t zones = measured_.zones + kSpareZones;
    size_t stores = measured_.stores + kSpareStores;

    auto is_too_large = [&] {
        return size_with_metrics(zones, stores) > zone_->shm.size;
    };

    while (zones > measured_.zones && is_too_large()) {
        zones--;
    }

    while (stores > measured_.stores && is_too_large()) {
        stores--;
    }

    void *memory =
        is_too_large()
            ? nullptr
            : ngx_slab_calloc(pool, Metrics::size_for(zones, stores));

    if (memory == nullptr) {
        return nullptr;
    }

    uint8_t secret[kSipHashKeySize];
    random_bytes(secret, sizeof(secret));

    return Metrics::format(memory, zones, stores, secret, ngx_time());
}

/* nginx calls this again after a reload, with the memory as it was. */
ngx_int_t SharedMemory::init(ngx_shm_zone_t *zone, void *) noexcept
{
    ngx_slab_pool_t *pool = pool_of(zone);

    auto *shared = static_cast<SharedMemory *>(zone->data);

    if (pool->data != nullptr) {
        return shared->has_what_is_shown(contents_of(zone));
    }

    auto *contents =
        static_cast<Contents *>(ngx_slab_calloc(pool, sizeof(Contents)));

    if (contents != nullptr) {
        contents->metrics = shared->make_metrics(pool);
    }

    /* all pages that are left: nobody else takes any */
    size_t size = pool->pfree * ngx_pagesize;
    uint8_t secret[MemoryTable::kSecretSize];

    if (contents != nullptr && size >= MemoryTable::kSmallestMemory) {
        contents->table = ngx_slab_alloc(pool, size);
    }

    if (contents == nullptr || contents->table == nullptr) {
        ngx_log_error(NGX_LOG_EMERG, zone->shm.log, 0,
                      "sliding_limit: sliding_limit_memory of %uzk is too "
                      "small for this system",
                      zone->shm.size / 1024);
        return NGX_ERROR;
    }

    random_bytes(secret, sizeof(secret));
    MemoryTable::format(contents->table, size, secret);
    contents->table_size = size;
    pool->data = contents;

    return shared->has_what_is_shown(*contents);
}

/* A memory that began without metrics has no room for them until it begins
 * anew. */
ngx_int_t SharedMemory::has_what_is_shown(
    const Contents &contents) const noexcept
{
    if (contents.metrics != nullptr || !measured_.are_shown) {
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_EMERG, zone_->shm.log, 0,
                  "sliding_limit: sliding_limit_metrics has no room in the "
                  "memory that is in use; restart nginx, or change "
                  "sliding_limit_memory from %uzk to more",
                  zone_->shm.size / 1024);

    return NGX_ERROR;
}

TableStats SharedMemory::stats() const noexcept
{
    return locked()->stats();
}

void SharedMemory::report(uint64_t evictions, bool is_full) noexcept
{
    if (evictions == reported_evictions_ && !is_full) {
        return;
    }

    if (reported_at_ != 0 && ngx_current_msec - reported_at_ < kReportEveryMs) {
        return;
    }

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "sliding_limit: sliding_limit_memory of %uzk is too small: "
                  "%uL clients have been forgotten early so far%s",
                  zone_->shm.size / 1024, evictions,
                  is_full ? ", and one could not be counted" : "");

    reported_evictions_ = evictions;
    reported_at_ = ngx_current_msec;
}

}  // namespace sl
