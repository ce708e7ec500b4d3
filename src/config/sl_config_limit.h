/* Reads a `sliding_limit` line. */

#pragma once

#include "base/sl_nginx.h"
#include "request/sl_conf.h"

namespace sl {

/* False, with a message, if the line in `cf` is not right. */
bool read_limit(ngx_conf_t *cf, Limit *limit) noexcept;

}  // namespace sl
