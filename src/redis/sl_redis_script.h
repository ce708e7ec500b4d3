/* The Lua scripts, embedded by the build, and the digest Redis knows the one by
 * that counts. The other, lua/client.lua, is sent as it is: operators are rare.
 */

#pragma once

#include <string_view>

namespace sl {

std::string_view script_text() noexcept;

/* SHA-1 of the text in 40 lower-case hex digits. */
std::string_view script_sha() noexcept;

/* Commands that send it are written on the stack. */
constexpr size_t kMaxClientScript = 24 * 1024;
std::string_view client_script_text() noexcept;

}  // namespace sl
