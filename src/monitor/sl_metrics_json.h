/* The metrics as JSON, which the page reads, too. */

#pragma once

#include "monitor/sl_output.h"
#include "request/sl_conf.h"

namespace sl {

/* The location says how clients are shown, and whether they may be changed. */
void write_json(const MainConf &mcf, const LocationConf &lcf,
                Output &text) noexcept;

}  // namespace sl
