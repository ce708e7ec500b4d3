/*
 * The refusal of a request: its status, its line in the log, and that no cache
 * keeps it. sl_body has its body.
 */

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
 * What one client was refused with must not be handed to another by a cache,
 * whatever the application, add_header or expires say of the error page. False:
 * out of memory.
 */
bool forbid_caching(ngx_http_request_t *r) noexcept;

}  // namespace sl
