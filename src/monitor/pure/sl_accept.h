/* What a client says it likes to get: RFC 9110, Accept. */

#pragma once

#include <string_view>

namespace sl {

/*
 * How much it likes `type`, from 0 (not at all) to 1000. The range that fits
 * best decides: text/html before text/<any> before <any>.
 */
unsigned accepted_quality(std::string_view accept,
                          std::string_view type) noexcept;

}  // namespace sl
