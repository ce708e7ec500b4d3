/* What the client sees: rate-limit headers on every answer, and the refusal. */

#pragma once

#include "sl_check.h"
#include "sl_nginx.h"

namespace sl {

/*
 * Answers a refused request and ends it; to be returned by the phase handler,
 * which must not touch the request any more.
 */
ngx_int_t refuse(ngx_http_request_t *r, const Check &check) noexcept;

/* Puts the header filter in its place in the chain. */
void install_header_filter() noexcept;

/*
 * Seconds for X-RateLimit-Reset and Retry-After. -1: there is no such moment,
 * or it is not known.
 */
int64_t reset_value(ngx_http_request_t *r, const Check &check) noexcept;
int64_t retry_after_value(const Check &check) noexcept;

}  // namespace sl
