/*
 * Locations with `sliding_limit_metrics admin` in which everybody may change
 * limits, because no access rule was given.
 */

#pragma once

#include "base/sl_nginx.h"
#include "request/sl_conf.h"

namespace sl {

/* Marks them. For use when all of the configuration is read and merged, as long
 * as `cf` lasts. */
void find_open_admins(ngx_conf_t *cf, const MainConf &mcf) noexcept;

/* Logs a warning for each, unless a module that nginx does not come with may
 * have an access rule. For use when all modules have added their handlers. */
void warn_of_open_admins(const ngx_cycle_t *cycle,
                         const MainConf &mcf) noexcept;

}  // namespace sl
