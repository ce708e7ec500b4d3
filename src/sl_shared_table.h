/*
 * The piece of shared memory that sliding_limit_memory sizes: one table for
 * all workers, that survives a reload.
 */

#pragma once

#include "core/sl_memory_table.h"
#include "sl_nginx.h"

namespace sl {

class SharedTable {
  public:
    /* nullptr, with a message, if that cannot be. */
    static SharedTable *create(ngx_conf_t *cf, size_t size) noexcept;

    /* See MemoryTable; each of these at the present time. */
    bool ask(const LimitQuery *limits, size_t count, LimitState *states,
             int64_t *time_us) noexcept;
    void take_back(const LimitQuery *limits, size_t count,
                   int64_t time_us) noexcept;
    void remember(const LimitQuery &limit, const LimitState &state,
                  int64_t asked_us) noexcept;
    Recalled recall(const LimitQuery &limit, int64_t max_age_us,
                    LimitState *state) noexcept;
    void forget(const LimitQuery &limit) noexcept;

  private:
    class Locked;

    explicit SharedTable(ngx_shm_zone_t *zone) noexcept;

    void report(uint64_t evictions, bool is_full) noexcept;

    static ngx_int_t init(ngx_shm_zone_t *zone, void *old) noexcept;

    ngx_shm_zone_t *zone_;

    /* What the log has been told of, and when. */
    uint64_t reported_evictions_;
    ngx_msec_t reported_at_;
};

}  // namespace sl
