/* The header filters: where an answer is told of its limits. */

#pragma once

#include "base/sl_nginx.h"
#include "request/sl_check.h"

namespace sl {

/*
 * Put filters in their places in the chain: what sets the headers, so that
 * other modules may have a say in them, and what has the last word, where the
 * status is final: it settles the counts, and keeps caches from refusals.
 */
void install_header_filter() noexcept;
void install_last_header_filter() noexcept;

}  // namespace sl
