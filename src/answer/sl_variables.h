/* The $sliding_limit_* variables. */

#pragma once

#include "base/sl_nginx.h"

namespace sl {

bool add_variables(ngx_conf_t *cf) noexcept;

}  // namespace sl
