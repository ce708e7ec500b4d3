/* Reads a `sliding_limit_body` line. */

#pragma once

#include "answer/sl_body.h"

namespace sl {

/* nullptr, with a message, if the line in `cf` is not right. */
const Body *read_body(ngx_conf_t *cf) noexcept;

const Body *default_body() noexcept;

}  // namespace sl
