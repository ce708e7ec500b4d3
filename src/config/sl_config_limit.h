/* Reads a `sliding_limit` line. */

#pragma once

#include "base/sl_nginx.h"
#include "request/sl_conf.h"

namespace sl {

/* Adds the limit, or "off"; false, with a message, if the line is not right. */
bool set_limit(ngx_conf_t *cf, LocationConf *lcf) noexcept;

}  // namespace sl
