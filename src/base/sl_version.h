/* The module's own version, as CHANGELOG.md names it. */

#pragma once

#include <string_view>

namespace sl {

constexpr std::string_view kVersion = "0.9.0";

}  // namespace sl
