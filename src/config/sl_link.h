/*
 * Joins what the directives say, once all of them are read: gives zones their
 * stores, creates the shared memory, looks up host names.
 */

#pragma once

#include "request/sl_conf.h"

namespace sl {

/* False, with a message, if the directives do not fit together. */
bool link_configuration(ngx_conf_t *cf) noexcept;

}  // namespace sl
