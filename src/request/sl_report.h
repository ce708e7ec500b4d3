/* What the metrics hear of a request: of every zone that it has met, once. */

#pragma once

#include "request/pure/sl_outcome.h"
#include "request/sl_applied_limit.h"

namespace sl {

class Report {
  public:
    /* No limit of the zone applied. If memory is short, nobody hears of it. */
    void note_exempt(ngx_http_request_t *r, const Zone *zone) noexcept;

    /* Tells the metrics what they have not heard yet. */
    void tell(ngx_http_request_t *r, const AppliedLimits &limits,
              Outcome outcome) noexcept;

  private:
    ngx_array_t exempt_ = {}; /* const Zone *; no elements: there are none */

    /* How many of the limits, and of those zones, the metrics have heard of. */
    size_t told_limits_ = 0;
    size_t told_exempt_ = 0;
};

}  // namespace sl
