/* Reads the lines of directives that need few words. */

#pragma once

#include "request/sl_conf.h"

namespace sl {

/* All are false, with a message, if the line in `cf` is not right. */
bool set_memory(ngx_conf_t *cf, MainConf *mcf) noexcept;
bool set_deny_cache(ngx_conf_t *cf, LocationConf *lcf) noexcept;
bool set_status(ngx_conf_t *cf, LocationConf *lcf) noexcept;
bool set_header_styles(ngx_conf_t *cf, LocationConf *lcf) noexcept;
bool set_ipv6_prefix(ngx_conf_t *cf, LocationConf *lcf) noexcept;

}  // namespace sl
