/* Reads `sliding_limit_usage`. */

#pragma once

#include "request/sl_conf.h"

namespace sl {

bool set_usage(ngx_conf_t *cf, LocationConf *lcf) noexcept;

}  // namespace sl
