/* SHA-256 (FIPS 180-4). */

#pragma once

#include <cstddef>
#include <cstdint>

namespace sl {

constexpr size_t kSha256Size = 32;
constexpr size_t kSha256HexSize = 64;

void sha256(const void *data, size_t size,
            uint8_t (&digest)[kSha256Size]) noexcept;

/* Writes the digest of `data` to `hex`: 64 lower-case digits, no NUL. */
void sha256_hex(const void *data, size_t size, char *hex) noexcept;

}  // namespace sl
