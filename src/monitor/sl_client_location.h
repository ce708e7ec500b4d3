/*
 * Requests of operators at a location with sliding_limit_metrics: where one
 * client stands, who has a ban or an override, and, where the location allows
 * it, what is to be changed about a client.
 */

#pragma once

#include "base/sl_nginx.h"

namespace sl {

/* Whether it is such a request, or one that the location does not take at all.
 */
bool is_about_clients(ngx_http_request_t *r) noexcept;

ngx_int_t client_handler(ngx_http_request_t *r) noexcept;

}  // namespace sl
