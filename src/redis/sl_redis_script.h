/* The Lua script, embedded by the build, and the digest Redis knows it by. */

#pragma once

#include <string_view>

namespace sl {

/* Errands, which are rare, send all of it; they are written on the stack. */
constexpr size_t kMaxScript = 24 * 1024;
std::string_view script_text() noexcept;

/* SHA-1 of the text in 40 lower-case hex digits. */
std::string_view script_sha() noexcept;

}  // namespace sl
