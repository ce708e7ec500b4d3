/* Reads a `sliding_limit_redis` line. */

#pragma once

#include "base/sl_nginx.h"
#include "request/sl_conf.h"

namespace sl {

/*
 * Adds the store that the line in `cf` describes. False, with a message, if the
 * line is not right.
 */
bool set_redis(ngx_conf_t *cf, MainConf *mcf) noexcept;

/* Finds the store of this name; nullptr: there is none. */
const NamedStore *find_store(const MainConf &mcf,
                             std::string_view name) noexcept;

}  // namespace sl
