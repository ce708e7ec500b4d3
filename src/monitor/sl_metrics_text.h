/* The metrics as text: for Prometheus, and as JSON. */

#pragma once

#include "monitor/sl_output.h"
#include "request/sl_conf.h"

namespace sl {

void write_prometheus(const MainConf &mcf, Text &text) noexcept;
void write_json(const MainConf &mcf, KeysShown keys, Text &text) noexcept;

}  // namespace sl
