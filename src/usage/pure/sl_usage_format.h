/* Which responses can say what they have cost, by their headers. */

#pragma once

#include <string_view>

#include "usage/pure/sl_usage_scanner.h"

namespace sl {

/* False if nothing can be read of a response with this Content-Type. */
bool has_usage_format(std::string_view content_type,
                      UsageScanner::Format *format) noexcept;

/* Whether a Content-Range is that of a whole document, as "bytes 0-154/155"
 * is. */
bool is_whole_range(std::string_view content_range) noexcept;

}  // namespace sl
