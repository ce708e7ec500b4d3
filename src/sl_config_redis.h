/* Reads a `sliding_limit_redis` line. */

#pragma once

#include "sl_nginx.h"
#include "sl_store.h"

namespace sl {

/*
 * The store that the line in `cf` describes, living as long as the
 * configuration; nullptr, with a message, if it cannot be.
 */
Store *new_redis_store(ngx_conf_t *cf) noexcept;

}  // namespace sl
