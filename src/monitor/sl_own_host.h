/*
 * Whether a request names this server by a name that is the server's. A page
 * whose own name was made to lead to this server (DNS rebinding) names that
 * one, and to the browser it is a page of this server's.
 */

#pragma once

#include "base/sl_nginx.h"

namespace sl {

/*
 * True for a name of the server block, an address, "localhost", and what
 * `sliding_limit_metrics admin host=` adds. No other site can have a page under
 * an address or "localhost": no DNS says where those lead.
 */
bool is_own_host(ngx_http_request_t *r) noexcept;

}  // namespace sl
