/* Headers of the answer to a request. */

#pragma once

#include "base/sl_nginx.h"

namespace sl {

/* One more; false: out of memory. Name and value must live as long as `r`. */
bool set_header(ngx_http_request_t *r, std::string_view name,
                std::string_view value) noexcept;

/* Takes out what the application or an earlier stage has set. */
void remove_header(ngx_http_request_t *r, std::string_view name) noexcept;

}  // namespace sl
