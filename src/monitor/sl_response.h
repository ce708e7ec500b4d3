/* How whatever sliding_limit_metrics serves is sent. */

#pragma once

#include "monitor/sl_output.h"

namespace sl {

constexpr std::string_view kJsonType = "application/json";

/*
 * Sends the text as the whole response, never to be cached. Returns what a
 * content handler does; `type` must last as long as the request.
 */
ngx_int_t send_text(ngx_http_request_t *r, ngx_uint_t status,
                    std::string_view type, Output &text) noexcept;

}  // namespace sl
