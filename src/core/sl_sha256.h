/* SHA-256 (FIPS 180-4), for client keys that cannot stand in Redis as they are.
 */

#pragma once

#include <cstddef>
#include <cstdint>

namespace sl {

constexpr size_t kSha256HexSize = 64;

/* Writes the digest of `data` to `hex`: 64 lower-case digits, no NUL. */
void sha256_hex(const void *data, size_t size, char *hex) noexcept;

}  // namespace sl
