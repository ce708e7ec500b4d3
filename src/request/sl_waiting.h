/*
 * A request that waits for an answer: nothing but that makes it go on, but a
 * client that goes away is noticed.
 */

#pragma once

#include "base/sl_nginx.h"

namespace sl {

void begin_waiting(ngx_http_request_t *r) noexcept;

/*
 * False also if the request has gone elsewhere in the meantime: a client that
 * goes away can send it to post_action.
 */
bool is_waiting(ngx_http_request_t *r) noexcept;

/* From the event loop, with its phases. */
void go_on(ngx_http_request_t *r) noexcept;

}  // namespace sl
