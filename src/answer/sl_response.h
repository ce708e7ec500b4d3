/* What the client sees: rate-limit headers on every answer, and the refusal. */

#pragma once

#include "base/sl_nginx.h"
#include "request/sl_check.h"

namespace sl {

/*
 * Answers a refused request and ends it; to be returned by the phase handler,
 * which must not touch the request any more.
 */
ngx_int_t refuse(ngx_http_request_t *r, const Check &check) noexcept;

/*
 * What the answer says of the limit that is shown, instead of what it says of
 * another. False: out of memory.
 */
bool set_headers(ngx_http_request_t *r, const Check &check) noexcept;

/* Keeps caches from what is a refusal. False: out of memory. */
bool forbid_caching(ngx_http_request_t *r) noexcept;

/*
 * Whole seconds, or -1: there is no such moment, or it is not known.
 *
 * wait_seconds: until the limit has more room, or would admit the request.
 * reset_value: that, as sliding_limit_reset wants it.
 * retry_after_value: of the limit shown, if the request is refused.
 */
int64_t wait_seconds(const AppliedLimit &applied) noexcept;
int64_t reset_value(ngx_http_request_t *r,
                    const AppliedLimit &applied) noexcept;
int64_t retry_after_value(const Check &check) noexcept;

}  // namespace sl
