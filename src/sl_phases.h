/*
 * Where a request passes by: the phases in which it is checked, the filters
 * that tell its client, and where its counts settle.
 */

#pragma once

#include "base/sl_nginx.h"

namespace sl {

/* False: out of memory. */
bool install_handlers(ngx_conf_t *cf) noexcept;

/*
 * Put filters in their places in the chain: what sets the headers, so that
 * other modules may have a say in them, and what has the last word, where the
 * status is final: it settles the counts, and keeps caches from refusals.
 */
void install_header_filter() noexcept;
void install_last_header_filter() noexcept;

/* And what reads responses and waits for their ends, where that is wanted. */
void install_body_filter() noexcept;

/*
 * Moves the handlers of the phases in which requests are checked before those
 * of all other modules. False: one of them is not there, and `*missing` is its
 * phase.
 */
bool put_handlers_first(ngx_http_core_main_conf_t *cmcf,
                        const char **missing) noexcept;

}  // namespace sl
