/* What is JSON and what is not. */

#pragma once

#include <string_view>

namespace sl {

/* Whether `text` is one value, with white space around it or not. */
bool is_json(std::string_view text) noexcept;

/* Whether `text` is a number without exponent, which may stand in JSON as it
 * is. */
bool is_json_number(std::string_view text) noexcept;

}  // namespace sl
