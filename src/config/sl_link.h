/*
 * Joins what the directives say, once all of them are read: gives zones their
 * stores, creates the shared memory, looks up host names.
 */

#pragma once

#include "request/sl_conf.h"

namespace sl {

/* False, with a message, if it does not fit together. */
bool link_configuration(ngx_conf_t *cf) noexcept;

/* nullptr: there is none of this name. */
const NamedStore *find_store(const MainConf &mcf,
                             std::string_view name) noexcept;

}  // namespace sl
