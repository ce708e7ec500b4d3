#include "base/pure/sl_siphash.h"

namespace sl {

namespace {

/* Compilers make one load of this, and one store of write_word(). */
uint64_t read_word(const uint8_t *p)
{
    return uint64_t{p[0]} | uint64_t{p[1]} << 8 | uint64_t{p[2]} << 16
           | uint64_t{p[3]} << 24 | uint64_t{p[4]} << 32 | uint64_t{p[5]} << 40
           | uint64_t{p[6]} << 48 | uint64_t{p[7]} << 56;
}

void write_word(uint64_t word, uint8_t *p)
{
    for (int i = 0; i < 8; i++) {
        p[i] = static_cast<uint8_t>(word >> (8 * i));
    }
}

uint64_t rotate(uint64_t word, unsigned bits)
{
    return word << bits | word >> (64 - bits);
}

struct State {
    uint64_t v[4];

    void rounds(int count)
    {
        for (; count > 0; count--) {
            v[0] += v[1];
            v[1] = rotate(v[1], 13) ^ v[0];
            v[0] = rotate(v[0], 32);
            v[2] += v[3];
            v[3] = rotate(v[3], 16) ^ v[2];
            v[0] += v[3];
            v[3] = rotate(v[3], 21) ^ v[0];
            v[2] += v[1];
            v[1] = rotate(v[1], 17) ^ v[2];
            v[2] = rotate(v[2], 32);
        }
    }

    void absorb(uint64_t word)
    {
        v[3] ^= word;
        rounds(2);
        v[0] ^= word;
    }

    uint64_t squeeze(uint64_t mark, int i)
    {
        v[i] ^= mark;
        rounds(4);

        return v[0] ^ v[1] ^ v[2] ^ v[3];
    }
};

/* The state that has absorbed all of it, and is ready for the first half of the
 * hash. */
State absorbed(const uint64_t *head, size_t words, std::string_view text,
               const uint8_t (&key)[kSipHashKeySize])
{
    uint64_t k0 = read_word(key);
    uint64_t k1 = read_word(key + 8);
    State s{{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d ^ 0xee,
             k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573}};

    for (size_t i = 0; i < words; i++) {
        s.absorb(head[i]);
    }

    auto *p = reinterpret_cast<const uint8_t *>(text.data());
    size_t left = text.size();

    for (; left >= 8; left -= 8, p += 8) {
        s.absorb(read_word(p));
    }

    uint64_t last = static_cast<uint64_t>(8 * words + text.size()) << 56;

    for (size_t i = 0; i < left; i++) {
        last |= static_cast<uint64_t>(p[i]) << (8 * i);
    }

    s.absorb(last);

    return s;
}

}  // namespace

void siphash128(const uint64_t *head, size_t words, std::string_view text,
                const uint8_t (&key)[kSipHashKeySize],
                uint8_t (&hash)[kSipHashSize]) noexcept
{
    State s = absorbed(head, words, text, key);

    write_word(s.squeeze(0xee, 2), hash);
    write_word(s.squeeze(0xdd, 1), hash + 8);
}

uint64_t siphash64(std::string_view text,
                   const uint8_t (&key)[kSipHashKeySize]) noexcept
{
    return absorbed(nullptr, 0, text, key).squeeze(0xee, 2);
}

uint64_t public_siphash64(uint64_t number, std::string_view text) noexcept
{
    constexpr uint8_t kKey[kSipHashKeySize] = {};

    return absorbed(&number, 1, text, kKey).squeeze(0xee, 2);
}

}  // namespace sl
