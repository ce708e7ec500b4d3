/* Which responses can say what they have cost, by their media type. */

#pragma once

#include <string_view>

#include "usage/pure/sl_usage_scanner.h"

namespace sl {

/* False if nothing can be read of a response with this Content-Type. */
bool has_usage_format(std::string_view content_type,
                      UsageScanner::Format *format) noexcept;

}  // namespace sl
