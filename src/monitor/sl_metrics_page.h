/* The page that sliding_limit_metrics shows to people: page/, embedded. */

#pragma once

#include "monitor/sl_output.h"

namespace sl {

void write_page(Output &text) noexcept;

/*
 * Its Content-Security-Policy: it runs the script and the style that came with
 * it, and nothing else, whoever may have got something else into it. False: out
 * of memory.
 */
bool make_page_policy(ngx_conf_t *cf, ngx_str_t *policy) noexcept;

}  // namespace sl
