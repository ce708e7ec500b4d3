#include "base/pure/sl_sha256.h"

#include <cstring>

#include "base/pure/sl_words.h"

namespace sl {

namespace {

constexpr size_t kBlock = 64;

constexpr uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

uint32_t rotate_right(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

uint32_t load_big_endian(const uint8_t *p)
{
    return uint32_t{p[0]} << 24 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 8
           | p[3];
}

void absorb(uint32_t *state, const uint8_t *block)
{
    uint32_t w[64];

    for (int i = 0; i < 16; i++) {
        w[i] = load_big_endian(block + 4 * i);
    }

    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15];
        uint32_t b = w[i - 2];
        uint32_t s0 = rotate_right(a, 7) ^ rotate_right(a, 18) ^ a >> 3;
        uint32_t s1 = rotate_right(b, 17) ^ rotate_right(b, 19) ^ b >> 10;

        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }

    uint32_t v[8];
    memcpy(v, state, sizeof(v));

    for (int i = 0; i < 64; i++) {
        uint32_t e = v[4];
        uint32_t a = v[0];
        uint32_t s1 =
            rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25);
        uint32_t s0 =
            rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22);
        uint32_t choice = (e & v[5]) ^ (~e & v[6]);
        uint32_t majority = (a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]);
        uint32_t t1 = v[7] + s1 + choice + kRound[i] + w[i];

        memmove(v + 1, v, 7 * sizeof(v[0]));
        v[4] += t1;
        v[0] = t1 + s0 + majority;
    }

    for (int i = 0; i < 8; i++) {
        state[i] += v[i];
    }
}

}  // namespace

void sha256(const void *data, size_t size,
            uint8_t (&digest)[kSha256Size]) noexcept
{
    uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

    auto *p = static_cast<const uint8_t *>(data);
    size_t left = size;

    for (; left >= kBlock; left -= kBlock, p += kBlock) {
        absorb(state, p);
    }

    /* the rest, a one bit, zeroes, and the length in bits */
    uint8_t tail[2 * kBlock] = {};
    size_t tail_size = left + 9 <= kBlock ? kBlock : 2 * kBlock;

    if (left) {
        memcpy(tail, p, left);
    }

    tail[left] = 0x80;

    uint64_t bits = uint64_t{size} * 8;

    for (size_t i = 1; i <= 8; i++, bits >>= 8) {
        tail[tail_size - i] = static_cast<uint8_t>(bits);
    }

    for (size_t at = 0; at < tail_size; at += kBlock) {
        absorb(state, tail + at);
    }

    for (size_t i = 0; i < kSha256Size; i++) {
        digest[i] = static_cast<uint8_t>(state[i / 4] >> (24 - i % 4 * 8));
    }
}

void sha256_hex(const void *data, size_t size, char *hex) noexcept
{
    uint8_t digest[kSha256Size];

    sha256(data, size, digest);

    for (uint8_t byte : digest) {
        hex = append_hex(hex, byte);
    }
}

}  // namespace sl
