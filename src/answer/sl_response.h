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
 * Put filters in their places in the chain: what sets the headers, so that
 * other modules may have a say in them, and what has the last word, where the
 * status is final: it settles the counts, and keeps caches from refusals.
 */
void install_header_filter() noexcept;
void install_last_header_filter() noexcept;

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
