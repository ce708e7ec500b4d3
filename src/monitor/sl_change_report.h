/* What follows from a change that an operator has made: it is noted in the log
 * and in the metrics, and what was known of the zone's clients is not any more.
 */

#pragma once

#include "request/sl_conf.h"

namespace sl {

/* An operator's wish that something be changed about a client. */
struct Change {
    const Zone &zone;
    std::string_view key;
    Intervention intervention;
};

/* The store has made it. */
void report_change(ngx_http_request_t *r, const Change &change) noexcept;

/* Perhaps it has: `why` says how it came that nobody knows. */
void report_uncertain_change(ngx_http_request_t *r, const Change &change,
                             const char *why) noexcept;

}  // namespace sl
