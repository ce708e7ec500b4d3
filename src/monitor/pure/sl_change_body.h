/*
 * What an operator wants to be done about a client, as the body of a PUT says
 * it: {"ban":"15m"}, {"ban":null}, {"max":500,"for":"1d"} or {"max":null}.
 */

#pragma once

#include <cstdint>
#include <string_view>

#include "monitor/pure/sl_complaint.h"
#include "store/pure/sl_ruling.h"

namespace sl {

/* False, with a complaint that lasts as long as the body, for anything else
 * than one of these four. */
bool read_change(std::string_view body, Intervention *to,
                 Complaint *complaint) noexcept;

/* Reads nginx's notation of a time in whole seconds ("90s", "1h30m") to
 * microseconds; -1 if `text` is none, or is longer than any ruling. */
int64_t read_duration(std::string_view text) noexcept;

}  // namespace sl
