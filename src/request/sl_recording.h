/*
 * Joins the metrics in shared memory with what they are about: zones, stores
 * and workers.
 */

#pragma once

#include "request/sl_conf.h"

namespace sl {

/*
 * When the configuration is read and the memory is there, before workers start:
 * gives every zone and store its place.
 */
void find_metrics(MainConf *mcf, ngx_log_t *log) noexcept;

/* A worker starts, and ends. */
void enter_metrics(MainConf *mcf) noexcept;
void leave_metrics(MainConf *mcf) noexcept;

/* What a zone has to say about this request; logs whom it keeps refusing. */
void record_event(ngx_http_request_t *r, const Zone &zone,
                  const ZoneEvent &event) noexcept;

}  // namespace sl
