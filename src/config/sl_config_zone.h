/* The zones: what `sliding_limit` lines with the same name have in common. */

#pragma once

#include "request/sl_conf.h"

namespace sl {

/*
 * Finds the zone, or notes it down if this is where it is first used. nullptr,
 * with a message, if it is used in another way elsewhere; or out of memory.
 */
Zone *find_or_add_zone(ngx_conf_t *cf, const Zone &here) noexcept;

}  // namespace sl
