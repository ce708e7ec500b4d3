/*
 * What this nginx counts for operators to see, joined with what it is about: a
 * place in the metrics for every zone and every store, and one for this worker.
 *
 * The metrics stand in shared memory, which is there later than the
 * configuration and may have no room for them. So the configuration only points
 * to a recorder, which has no places to begin with.
 */

#pragma once

#include "request/sl_conf.h"

namespace sl {

class Recorder {
  public:
    /* A recorder for that many zones; nullptr: out of memory. */
    static Recorder *create(ngx_pool_t *pool, size_t zones) noexcept;

    /* To be called when the memory is there, before workers start. */
    void find_places(const MainConf &mcf, ngx_log_t *log) noexcept;

    /* A worker starts, and ends. */
    void enter() noexcept;
    void leave() noexcept;

    /* What a zone has to say about this request; logs whom it keeps refusing.
     */
    void record(ngx_http_request_t *r, const Zone &zone,
                const ZoneEvent &event) noexcept;

    /* What a request has cost in a zone after all. */
    void record(const Zone &zone, const Settlement &settlement) noexcept;

    /* How many checks of this worker wait for an answer. */
    std::atomic<int64_t> &checks_in_flight() noexcept
    {
        return worker_->checks_in_flight;
    }

    /* Both are nullptr if the memory has no room for them. */
    Metrics *metrics() const noexcept { return metrics_; }
    ZoneMetrics *zone(const Zone &zone) const noexcept
    {
        return zones_[zone.index];
    }

  private:
    explicit Recorder(ZoneMetrics **zones) noexcept;

    Metrics *metrics_;
    ZoneMetrics **zones_; /* by their index */
    WorkerMetrics *worker_;

    /* The place of a worker that has none: nobody sees what it counts. */
    WorkerMetrics unseen_;
};

}  // namespace sl
