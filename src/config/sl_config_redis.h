/* Reads a `sliding_limit_redis` line. */

#pragma once

#include "base/sl_nginx.h"
#include "request/sl_conf.h"

namespace sl {

/*
 * Sets up the store that the line in `cf` describes, living as long as the
 * configuration; false, with a message, if it cannot be.
 */
bool read_redis(ngx_conf_t *cf, NamedStore *to) noexcept;

/*
 * Once all is read: looks up its host names, unless there is a resolver that
 * can do so later. False, with a message, if they are not known.
 */
bool look_up_redis(ngx_conf_t *cf, const NamedStore &store) noexcept;

}  // namespace sl
