/* The $sliding_limit_* variables. */

#pragma once

#include "base/sl_nginx.h"

namespace sl {

bool add_variables(ngx_conf_t *cf) noexcept;

/* Whether it is one of those that have a value only after a check, or after the
 * response: all but $sliding_limit_id and $sliding_limit_addr. */
bool is_of_outcome(std::string_view name) noexcept;

}  // namespace sl
