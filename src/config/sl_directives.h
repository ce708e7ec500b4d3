/*
 * The directives: one table. docs/directives.md documents them, sl_config_*.cpp
 * read their lines, and sl_defaults.cpp has their defaults.
 */

#pragma once

#include "request/sl_conf.h"

namespace sl {

extern ngx_command_t commands[];

}  // namespace sl
