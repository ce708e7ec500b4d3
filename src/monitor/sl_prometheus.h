/* The metrics as text for Prometheus. */

#pragma once

#include "monitor/sl_output.h"
#include "request/sl_conf.h"

namespace sl {

void write_prometheus(const MainConf &mcf, Output &text) noexcept;

}  // namespace sl
