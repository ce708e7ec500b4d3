/*
 * The times that a client is told, by headers, bodies and variables alike: in
 * whole seconds, or -1 where there is no such moment, or it is not known.
 */

#pragma once

#include "base/sl_nginx.h"
#include "request/sl_check.h"

namespace sl {

/* How long until the limit has more room, or would admit the request. */
int64_t wait_seconds(const AppliedLimit &applied) noexcept;

/* The same as sliding_limit_reset wants it: as a time span, or as a time. */
int64_t reset_value(ngx_http_request_t *r,
                    const AppliedLimit &applied) noexcept;

/* The wait for the limit that is shown, if that refuses the request. */
int64_t retry_after_value(const Check &check) noexcept;

}  // namespace sl
