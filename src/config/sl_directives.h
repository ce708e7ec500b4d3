/*
 * The directives: one table, and what each of them does. docs and README.md
 * document them.
 */

#pragma once

#include "request/sl_conf.h"

namespace sl {

extern ngx_command_t commands[];

void *create_main_conf(ngx_conf_t *cf) noexcept;
void *create_location_conf(ngx_conf_t *cf) noexcept;
char *merge_location_conf(ngx_conf_t *cf, void *parent, void *child) noexcept;

}  // namespace sl
