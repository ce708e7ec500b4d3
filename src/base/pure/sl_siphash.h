/* SipHash-2-4 with 128 bits of output, for names that nobody can make collide.
 */

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sl {

constexpr size_t kSipHashKeySize = 16;
constexpr size_t kSipHashSize = 16;

/* The hash of these words, as little-endian bytes, followed by `text`. */
void siphash128(const uint64_t *head, size_t words, std::string_view text,
                const uint8_t (&key)[kSipHashKeySize],
                uint8_t (&hash)[kSipHashSize]) noexcept;

/* The first half of the hash, which costs less. */
uint64_t siphash64(std::string_view text,
                   const uint8_t (&key)[kSipHashKeySize]) noexcept;

/* The same of a number followed by `text`, for names that are no client's: with
 * a key that everybody knows. */
uint64_t public_siphash64(uint64_t number, std::string_view text) noexcept;

}  // namespace sl
