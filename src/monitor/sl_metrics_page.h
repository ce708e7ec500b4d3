/* The page that sliding_limit_metrics shows to people: page/, embedded. */

#pragma once

#include "monitor/sl_output.h"

namespace sl {

void write_page(Output &text) noexcept;

/*
 * Writes the page's Content-Security-Policy, by which a browser runs the script
 * and the style that came with the page and nothing else, whatever somebody may
 * have got into it. False: out of memory.
 */
bool make_page_policy(ngx_conf_t *cf, ngx_str_t *policy) noexcept;

}  // namespace sl
