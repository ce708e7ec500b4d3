/*
 * A client's key as people may read it: an ordinary one as it is; any other
 * (long, control characters, braces, a leading '#') as '#' and its SHA-256. No
 * two keys share such a text.
 */

#pragma once

#include <cstddef>
#include <string_view>

namespace sl {

constexpr size_t kMaxReadableKey = 128;

/* Writes it to `to`, which has room for kMaxReadableKey, and returns its size.
 */
size_t readable_key(std::string_view key, char *to) noexcept;

/* Whether such a text is the key itself. */
bool is_whole_key(std::string_view readable) noexcept;

}  // namespace sl
