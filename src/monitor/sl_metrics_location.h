/* What `sliding_limit_metrics` serves: a page, JSON, or text for Prometheus. */

#pragma once

#include "base/sl_nginx.h"

namespace sl {

ngx_int_t metrics_handler(ngx_http_request_t *r) noexcept;

}  // namespace sl
