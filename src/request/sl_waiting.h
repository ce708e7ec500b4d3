/*
 * A request that waits for an answer: nothing but that makes it go on, but a
 * client that goes away is noticed.
 */

#pragma once

#include "base/sl_nginx.h"

namespace sl {

void hold(ngx_http_request_t *r) noexcept;

/*
 * False also if the request has gone elsewhere in the meantime: a client that
 * goes away can send it to post_action.
 */
bool is_held(ngx_http_request_t *r) noexcept;

/* The request goes on from the event loop, with its phases. */
void resume(ngx_http_request_t *r) noexcept;

}  // namespace sl
