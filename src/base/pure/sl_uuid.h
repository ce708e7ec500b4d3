/* UUID version 7 (RFC 9562): a request's id, and its member in the sorted set.
 */

#pragma once

#include <cstddef>
#include <cstdint>

namespace sl {

constexpr size_t kUuidSize = 36;
constexpr size_t kUuidRandomBytes = 10;

/* Writes 36 characters to `text`, no NUL. 74 of the random bits are used. */
void uuid_v7(uint64_t unix_ms, const uint8_t random[kUuidRandomBytes],
             char *text) noexcept;

}  // namespace sl
