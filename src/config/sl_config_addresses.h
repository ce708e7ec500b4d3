/* Reads the addresses in the URL of a `sliding_limit_redis` line. */

#pragma once

#include "redis/pure/sl_redis_url.h"
#include "redis/sl_redis_settings.h"
#include "request/sl_conf.h"

namespace sl {

/* False, with a message, if one of them cannot be an address. */
bool set_addresses(ngx_conf_t *cf, const RedisUrl &url,
                   RedisSettings *settings) noexcept;

/*
 * Looks up the host names of a store, once the whole configuration is read,
 * unless there is a resolver that can do so later. False, with a message, if
 * one of them is not known.
 */
bool look_up_host_names(ngx_conf_t *cf, const NamedStore &store) noexcept;

}  // namespace sl
