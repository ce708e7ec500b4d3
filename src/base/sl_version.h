/* The module's version: here, and asked for by all else (scripts/version). */

#pragma once

#include <string_view>

namespace sl {

constexpr std::string_view kVersion = "1.0.0";

}  // namespace sl
