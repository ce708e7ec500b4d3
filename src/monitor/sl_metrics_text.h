/* The metrics as text: for Prometheus, and as JSON. */

#pragma once

#include "monitor/sl_output.h"
#include "request/sl_conf.h"

namespace sl {

void write_prometheus(const MainConf &mcf, Output &text) noexcept;
void write_json(const MainConf &mcf, KeysShown keys, Output &text) noexcept;

}  // namespace sl
