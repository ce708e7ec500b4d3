/* Reads a `sliding_limit_metrics` line. */

#pragma once

#include "base/sl_nginx.h"
#include "request/sl_conf.h"

namespace sl {

/* False, with a message, if the line is not right. */
bool set_metrics(ngx_conf_t *cf, LocationConf *lcf) noexcept;

/* Gives its settings and its handler to each "if" and "limit_except" of the
 * location, and to nothing else. False, with a message, if another directive
 * answers the requests of the location. */
bool merge_metrics(ngx_conf_t *cf, const LocationConf &from,
                   LocationConf *to) noexcept;

}  // namespace sl
