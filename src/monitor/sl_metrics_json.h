/* The metrics as JSON, which the page reads, too. */

#pragma once

#include "monitor/sl_output.h"
#include "request/sl_conf.h"

namespace sl {

/* `keys` says how clients are shown. */
void write_json(const MainConf &mcf, KeysShown keys, Output &text) noexcept;

}  // namespace sl
