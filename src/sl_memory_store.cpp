#include "sl_memory_store.h"

#include <new>

#include "core/sl_memory_table.h"
#include "sl_clock.h"
#include "sl_config.h"
#include "sl_random.h"

namespace sl {

namespace {

/* That memory is short is logged this often at most, by each worker. */
constexpr ngx_msec_t kReportEveryMs = 10000;

ngx_slab_pool_t *pool_of(ngx_shm_zone_t *zone)
{
    return reinterpret_cast<ngx_slab_pool_t *>(zone->shm.addr);
}

}  // namespace

/*
 * The table, while nobody else has it. If a worker is killed in between, the
 * master process releases the lock, and the table repairs itself.
 */
class MemoryStore::Locked {
  public:
    explicit Locked(ngx_shm_zone_t *zone) noexcept
        : mutex_(pool_of(zone)->mutex), table_(pool_of(zone)->data)
    {
        ngx_shmtx_lock(&mutex_);
    }

    ~Locked() { ngx_shmtx_unlock(&mutex_); }

    Locked(const Locked &) = delete;
    Locked &operator=(const Locked &) = delete;

    MemoryTable *operator->() noexcept { return &table_; }

  private:
    ngx_shmtx_t &mutex_;
    MemoryTable table_;
};

MemoryStore *MemoryStore::create(ngx_conf_t *cf, size_t size) noexcept
{
    ngx_str_t name = ngx_string("sliding_limit");
    ngx_shm_zone_t *zone =
        ngx_shared_memory_add(cf, &name, size, &ngx_http_sliding_limit_module);
    void *memory = ngx_palloc(cf->pool, sizeof(MemoryStore));

    if (zone == nullptr || memory == nullptr) {
        return nullptr;
    }

    zone->init = init;

    return new (memory) MemoryStore(zone);
}

MemoryStore::MemoryStore(ngx_shm_zone_t *zone) noexcept
    : zone_(zone), reported_evictions_(0), reported_at_(0)
{}

/* Called again after a reload, with the memory as it was. */
ngx_int_t MemoryStore::init(ngx_shm_zone_t *zone, void *) noexcept
{
    ngx_slab_pool_t *pool = pool_of(zone);

    /* for nginx it is enough to be there */
    zone->data = zone;

    if (pool->data != nullptr) {
        return NGX_OK;
    }

    /* all pages that there are: nobody else takes any */
    size_t size = pool->pfree * ngx_pagesize;
    uint8_t secret[MemoryTable::kSecretSize];

    pool->data = size >= MemoryTable::kSmallestMemory
                     ? ngx_slab_alloc(pool, size)
                     : nullptr;

    if (pool->data == nullptr) {
        ngx_log_error(NGX_LOG_EMERG, zone->shm.log, 0,
                      "sliding_limit: sliding_limit_memory of %uzk is too "
                      "small for this system",
                      zone->shm.size / 1024);
        return NGX_ERROR;
    }

    random_bytes(secret, sizeof(secret));
    MemoryTable::format(pool->data, size, secret);

    return NGX_OK;
}

PendingQuestion *MemoryStore::ask(const Query &query, AnswerReceiver &,
                                  Answer *answer) noexcept
{
    uint64_t evictions;

    {
        Locked table(zone_);

        answer->known = table->ask(query.limits, query.count, monotonic_us(),
                                   answer->states, &answer->time_us);
        evictions = table->stats().evictions;
    }

    if (!answer->known || evictions != reported_evictions_) {
        report(evictions, !answer->known);
    }

    return nullptr;
}

void MemoryStore::take_back(const Query &query, int64_t time_us) noexcept
{
    Locked(zone_)->take_back(query.limits, query.count, time_us);
}

void MemoryStore::report(uint64_t evictions, bool is_full) noexcept
{
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
