/*
 * The piece of shared memory that sliding_limit_memory sizes, and that survives
 * a reload: one table for all workers, marks of what the table remembers, and
 * the metrics.
 *
 * SharedMemory owns the memory and the lock, MemoryTable is the table in it,
 * and MemoryStore (which counts) and DenyCache (which remembers) use both.
 */

#pragma once

#include "base/sl_nginx.h"
#include "metrics/pure/sl_metrics.h"
#include "store/pure/sl_memory_table.h"
#include "store/pure/sl_refusal_marks.h"

namespace sl {

class SharedMemory {
  public:
    /* What there are metrics of, and whether somebody wants to see them. */
    struct Measured {
        size_t zones;
        size_t stores;
        bool are_shown;
    };

    /* The table, while nobody else has it. */
    class Locked;

    /* nullptr, with a message, if there cannot be such a memory. */
    static SharedMemory *create(ngx_conf_t *cf, size_t size,
                                const Measured &measured) noexcept;

    /* The least size that has room for the metrics of so many. */
    static size_t size_with_metrics(size_t zones, size_t stores) noexcept;

    /* Not before the memory is there; metrics() is nullptr if the memory is too
     * small for any. */
    Locked locked() const noexcept;
    RefusalMarks &refusal_marks() const noexcept;
    Metrics *metrics() const noexcept;

    TableStats stats() const noexcept;

    /* Tells the log, now and then, that memory is short: so many clients had to
     * go early in all, and there was no room even so. */
    void report(uint64_t evictions, bool is_full) noexcept;

  private:
    /* What the memory begins with. */
    struct Contents {
        void *table;
        size_t table_size;
        Metrics *metrics;
        RefusalMarks refusal_marks;
    };

    SharedMemory(ngx_shm_zone_t *zone, const Measured &measured) noexcept;

    Metrics *make_metrics(ngx_slab_pool_t *pool) const noexcept;
    ngx_int_t has_what_is_shown(const Contents &contents) const noexcept;

    static ngx_int_t init(ngx_shm_zone_t *zone, void *old) noexcept;
    static Contents &contents_of(ngx_shm_zone_t *zone) noexcept;

    ngx_shm_zone_t *zone_;
    Measured measured_;

    /* What the log has been told of, and when. */
    uint64_t reported_evictions_;
    ngx_msec_t reported_at_;
};

/*
 * If a worker is killed while it holds the lock, the master process releases
 * it, and the table repairs itself.
 */
class SharedMemory::Locked {
  public:
    Locked(ngx_shmtx_t *mutex, const Contents &contents) noexcept
        : mutex_(mutex), table_(contents.table, contents.table_size)
    {
        ngx_shmtx_lock(mutex_);
    }

    ~Locked() { ngx_shmtx_unlock(mutex_); }

    Locked(const Locked &) = delete;
    Locked &operator=(const Locked &) = delete;

    MemoryTable *operator->() noexcept { return &table_; }

  private:
    ngx_shmtx_t *mutex_;
    MemoryTable table_;
};

}  // namespace sl
