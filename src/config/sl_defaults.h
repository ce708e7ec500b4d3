/*
 * What holds where a directive is not given: the value of the level above, or
 * the default. nginx calls these while it reads the configuration.
 */

#pragma once

#include "request/sl_conf.h"

namespace sl {

void *create_main_conf(ngx_conf_t *cf) noexcept;
void *create_location_conf(ngx_conf_t *cf) noexcept;
char *merge_location_conf(ngx_conf_t *cf, void *parent, void *child) noexcept;

}  // namespace sl
