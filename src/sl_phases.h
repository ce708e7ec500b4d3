/* The phases in which requests are checked, and where their counts settle. */

#pragma once

#include "base/sl_nginx.h"

namespace sl {

ngx_int_t access_handler(ngx_http_request_t *r) noexcept;
ngx_int_t precontent_handler(ngx_http_request_t *r) noexcept;
ngx_int_t log_handler(ngx_http_request_t *r) noexcept;

/*
 * Moves the access handler before those of all other modules. False: it is not
 * among them.
 */
bool put_access_handler_first(ngx_http_core_main_conf_t *cmcf) noexcept;

}  // namespace sl
