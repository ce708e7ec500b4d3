/*
 * The piece of shared memory that sliding_limit_memory sizes, and that survives
 * a reload: one table for all workers, and the metrics.
 */

#pragma once

#include "base/sl_nginx.h"
#include "metrics/pure/sl_metrics.h"
#include "store/pure/sl_memory_table.h"

namespace sl {

class SharedMemory {
  public:
    /* What there are metrics of, and whether somebody wants to see them. */
    struct Measured {
        size_t zones;
        size_t stores;
        bool are_shown;
    };

    /* nullptr, with a message, if that cannot be. */
    static SharedMemory *create(ngx_conf_t *cf, size_t size,
                                const Measured &measured) noexcept;

    /* Least size with room for the metrics of so many. */
    static size_t size_with_metrics(size_t zones, size_t stores) noexcept;

    /* nullptr if it is too small for any. Not before the memory is there. */
    Metrics *metrics() const noexcept;

    /* See MemoryTable; each of these at the present time. False: there is no
     * memory left to count it in. */
    bool ask(const LimitQuery *limits, size_t count, LimitState *states,
             int64_t *time_us) noexcept;
    void take_back(const LimitQuery *limits, size_t count,
                   int64_t time_us) noexcept;
    void remember(const LimitQuery &limit, const LimitState &state,
                  int64_t asked_us) noexcept;
    Recalled recall(const LimitQuery &limit, int64_t max_age_us,
                    LimitState *state) noexcept;
    void forget(const LimitQuery &limit) noexcept;
    TableStats stats() noexcept;

  private:
    class Locked;

    /* Begins the memory. */
    struct Contents {
        void *table;
        Metrics *metrics;
    };

    SharedMemory(ngx_shm_zone_t *zone, const Measured &measured) noexcept;

    Metrics *make_metrics(ngx_slab_pool_t *pool) const noexcept;
    ngx_int_t has_what_is_shown(const Contents &contents) const noexcept;

    Decided ask_once(const LimitQuery *limits, size_t count, LimitState *states,
                     int64_t *time_us, uint64_t *evictions) noexcept;

    void report(uint64_t evictions, bool is_full) noexcept;

    static ngx_int_t init(ngx_shm_zone_t *zone, void *old) noexcept;
    static const Contents &contents_of(ngx_shm_zone_t *zone) noexcept;

    ngx_shm_zone_t *zone_;
    Measured measured_;

    /* What the log has been told of, and when. */
    uint64_t reported_evictions_;
    ngx_msec_t reported_at_;
};

}  // namespace sl
