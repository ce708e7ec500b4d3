/* The access phase: where requests are checked. */

#pragma once

#include "sl_nginx.h"

namespace sl {

ngx_int_t access_handler(ngx_http_request_t *r) noexcept;

}  // namespace sl
