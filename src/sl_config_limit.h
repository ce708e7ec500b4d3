/* Reads a `sliding_limit` line. */

#pragma once

#include "sl_config.h"
#include "sl_nginx.h"

namespace sl {

/* False, with a message, if the line in `cf` is not right. */
bool read_limit(ngx_conf_t *cf, Limit *limit) noexcept;

}  // namespace sl
