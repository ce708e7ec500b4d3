/* What is JSON and what is not. */

#pragma once

#include <string_view>

namespace sl {

/* One value, with white space around it or not. */
bool is_json(std::string_view text) noexcept;

/* A number without exponent: it may stand in JSON as it is. */
bool is_json_number(std::string_view text) noexcept;

}  // namespace sl
