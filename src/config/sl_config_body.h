/* Reads a `sliding_limit_body` line. */

#pragma once

#include "answer/sl_body.h"
#include "request/sl_conf.h"

namespace sl {

/* False, with a message, if the line in `cf` is not right. */
bool set_body(ngx_conf_t *cf, LocationConf *lcf) noexcept;

const Body *default_body() noexcept;

}  // namespace sl
