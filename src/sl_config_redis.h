/* Reads a `sliding_limit_redis` line. */

#pragma once

#include "sl_config.h"
#include "sl_nginx.h"

namespace sl {

/*
 * Sets up the store that the line in `cf` describes, living as long as the
 * configuration; false, with a message, if it cannot be.
 */
bool read_redis(ngx_conf_t *cf, NamedStore *to) noexcept;

}  // namespace sl
