/* The headers that tell a client of its limits, on every answer. */

#pragma once

#include "base/sl_nginx.h"
#include "request/sl_check.h"

namespace sl {

/*
 * Sets those that sliding_limit_headers asks for, and Retry-After on a refusal,
 * in place of any that are there; the check must have a limit to show. Those
 * that there is no memory for are missing: no reason to fail a request.
 */
void set_headers(ngx_http_request_t *r, const Check &check) noexcept;

}  // namespace sl
