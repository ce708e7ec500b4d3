/*
 * Looking at many bytes at once: with the instructions that every x86-64 has,
 * or with eight bytes in a number, which is slower but is C++. Nothing is read
 * that does not belong to what is given.
 */

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace sl {

/* Which of 64 bytes are what, bit 0 being about the first of them. */
struct ByteMasks {
    uint64_t quotes;
    uint64_t backslashes;
    uint64_t opening; /* brackets, of objects and arrays */
    uint64_t closing;
};

constexpr size_t kMaskedBytes = 64;

/* Brackets of arrays differ from those of objects by this bit alone, and no
 * other byte becomes one of these by it. */
constexpr unsigned char kBracketBit = '{' ^ '[';

/* Of a number that is not 0. */
inline unsigned lowest_bit(uint64_t number) noexcept
{
    return static_cast<unsigned>(__builtin_ctzll(number));
}

/* Bit N: an odd number of bits 0 to N are set. */
inline uint64_t parity_up_to(uint64_t bits) noexcept
{
    for (unsigned shift = 1; shift < 64; shift *= 2) {
        bits ^= bits << shift;
    }

    return bits;
}

namespace portable {

/* The first of them as the lowest, as the machine has it or not. */
inline uint64_t eight_bytes(const char *bytes) noexcept
{
    uint64_t number;

    memcpy(&number, bytes, sizeof(number));

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    number = __builtin_bswap64(number);
#endif

    return number;
}

constexpr uint64_t repeat(unsigned char byte) noexcept
{
    return byte * (~uint64_t{0} / 0xff);
}

/* The highest bit of each byte that is this one. */
inline uint64_t where_equal(uint64_t bytes, char byte) noexcept
{
    uint64_t different = bytes ^ repeat(static_cast<unsigned char>(byte));
    uint64_t low = repeat(0x7f);

    /* what carries into the highest bit comes from no other byte */
    return ~(((different & low) + low) | different | low);
}

/* These bits side by side. */
inline uint64_t gather(uint64_t highest_bits) noexcept
{
    return (highest_bits >> 7) * 0x0102040810204080 >> 56;
}

inline ByteMasks masks_of(const char *bytes) noexcept
{
    ByteMasks masks{};

    for (unsigned i = 0; i < kMaskedBytes; i += 8) {
        uint64_t eight = eight_bytes(bytes + i);
        uint64_t brackets = eight | repeat(kBracketBit);

        masks.quotes |= gather(where_equal(eight, '"')) << i;
        masks.backslashes |= gather(where_equal(eight, '\\')) << i;
        masks.opening |= gather(where_equal(brackets, '{')) << i;
        masks.closing |= gather(where_equal(brackets, '}')) << i;
    }

    return masks;
}

/* Where the first of two bytes stands, or the end. */
inline const char *find_either(const char *at, const char *end, char a,
                               char b) noexcept
{
    for (; end - at >= 8; at += 8) {
        uint64_t eight = eight_bytes(at);
        uint64_t found = where_equal(eight, a) | where_equal(eight, b);

        if (found != 0) {
            return at + lowest_bit(found) / 8;
        }
    }

    while (at != end && *at != a && *at != b) {
        at++;
    }

    return at;
}

}  // namespace portable

#if defined(__SSE2__)

namespace sse2 {

inline __m128i sixteen_bytes(const char *bytes) noexcept
{
    return _mm_loadu_si128(reinterpret_cast<const __m128i *>(bytes));
}

inline __m128i where_equal(__m128i bytes, char byte) noexcept
{
    return _mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte));
}

inline uint64_t gather(__m128i bytes) noexcept
{
    return static_cast<unsigned>(_mm_movemask_epi8(bytes));
}

inline ByteMasks masks_of(const char *bytes) noexcept
{
    ByteMasks masks{};

    for (unsigned i = 0; i < kMaskedBytes; i += 16) {
        __m128i some = sixteen_bytes(bytes + i);
        __m128i brackets = _mm_or_si128(some, _mm_set1_epi8(kBracketBit));

        masks.quotes |= gather(where_equal(some, '"')) << i;
        masks.backslashes |= gather(where_equal(some, '\\')) << i;
        masks.opening |= gather(where_equal(brackets, '{')) << i;
        masks.closing |= gather(where_equal(brackets, '}')) << i;
    }

    return masks;
}

inline const char *find_either(const char *at, const char *end, char a,
                               char b) noexcept
{
    for (; end - at >= 16; at += 16) {
        __m128i some = sixteen_bytes(at);
        uint64_t found =
            gather(_mm_or_si128(where_equal(some, a), where_equal(some, b)));

        if (found != 0) {
            return at + lowest_bit(found);
        }
    }

    return portable::find_either(at, end, a, b);
}

}  // namespace sse2

using sse2::find_either;
using sse2::masks_of;

#else

using portable::find_either;
using portable::masks_of;

#endif

}  // namespace sl
