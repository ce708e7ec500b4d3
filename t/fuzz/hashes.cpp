/* SHA-256 and SipHash, compared with OpenSSL's. */

#include <cstring>
#include <memory>
#include <vector>

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include "base/pure/sl_sha256.h"
#include "base/pure/sl_siphash.h"
#include "fuzz.h"

namespace {

std::string siphash_of_openssl(const std::string &text,
                               const uint8_t (&key)[sl::kSipHashKeySize])
{
    static EVP_MAC *mac = EVP_MAC_fetch(nullptr, "SIPHASH", nullptr);
    std::unique_ptr<EVP_MAC_CTX, decltype(&EVP_MAC_CTX_free)> context(
        EVP_MAC_CTX_new(mac), EVP_MAC_CTX_free);
    unsigned char hash[sl::kSipHashSize];
    size_t size = sizeof(hash);

    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &size),
        OSSL_PARAM_construct_end(),
    };

    check(EVP_MAC_init(context.get(), key, sizeof(key), parameters) == 1);
    check(EVP_MAC_update(context.get(),
                         reinterpret_cast<const unsigned char *>(text.data()),
                         text.size())
          == 1);
    check(EVP_MAC_final(context.get(), hash, &size, sizeof(hash)) == 1);

    return {reinterpret_cast<char *>(hash), size};
}

void check_sha256(const std::string &text)
{
    uint8_t ours[sl::kSha256Size];
    uint8_t theirs[SHA256_DIGEST_LENGTH];

    sl::sha256(text.data(), text.size(), ours);
    SHA256(reinterpret_cast<const unsigned char *>(text.data()), text.size(),
           theirs);
    check(memcmp(ours, theirs, sizeof(ours)) == 0);
}

/* Words that stand before the text are hashed as if they were its beginning. */
void check_siphash(const std::vector<uint64_t> &head, const std::string &text,
                   const uint8_t (&key)[sl::kSipHashKeySize])
{
    std::string all;

    for (uint64_t word : head) {
        for (int i = 0; i < 8; i++) {
            all += static_cast<char>(word >> (8 * i));
        }
    }

    all += text;

    std::string expected = siphash_of_openssl(all, key);
    uint8_t hash[sl::kSipHashSize];

    sl::siphash128(head.data(), head.size(), text, key, hash);
    check(memcmp(hash, expected.data(), sizeof(hash)) == 0);

    uint64_t half = 0;

    for (int i = 7; i >= 0; i--) {
        half = half << 8 | static_cast<uint8_t>(expected[i]);
    }

    check(!head.empty() || sl::siphash64(text, key) == half);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Input input(data, size);
    uint8_t key[sl::kSipHashKeySize];

    for (uint8_t &byte : key) {
        byte = input.number<uint8_t>();
    }

    std::vector<uint64_t> head(input.number<uint8_t>() % 4);

    for (uint64_t &word : head) {
        word = input.number<uint64_t>();
    }

    check_sha256(input.rest());
    check_siphash(head, input.rest(), key);

    return 0;
}
