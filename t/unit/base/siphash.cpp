/* SipHash-2-4 with 128 bits, against the values of its authors. */

#include "base/pure/sl_siphash.h"

#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "unit.h"

namespace {

/* The hash of the first n of the bytes 0, 1, 2, ... with the key 0, 1,
 * ... 15. */
std::string hash_of_first(size_t n)
{
    uint8_t key[sl::kSipHashKeySize];
    uint8_t hash[sl::kSipHashSize];
    std::vector<char> text;
    std::string hex;

    for (size_t i = 0; i < sizeof(key); i++) {
        key[i] = static_cast<uint8_t>(i);
    }

    for (size_t i = 0; i < n; i++) {
        text.push_back(static_cast<char>(i));
    }

    sl::siphash128(nullptr, 0, {text.data(), text.size()}, key, hash);

    for (uint8_t byte : hash) {
        const char *digits = "0123456789abcdef";

        hex += digits[byte >> 4];
        hex += digits[byte & 15];
    }

    return hex;
}

void known_values_come_out(void **)
{
    assert_string_equal(hash_of_first(0).c_str(),
                        "a3817f04ba25a8e66df67214c7550293");
    assert_string_equal(hash_of_first(1).c_str(),
                        "da87c1d86b99af44347659119b22fc45");
    assert_string_equal(hash_of_first(2).c_str(),
                        "8177228da4a45dc7fca38bdef60affe4");
    assert_string_equal(hash_of_first(8).c_str(),
                        "3b62a9ba6258f5610f83e264f31497b4");
}

void every_length_has_a_value_of_its_own(void **)
{
    std::vector<std::string> all;

    for (size_t n = 0; n < 64; n++) {
        for (const std::string &other : all) {
            assert_string_not_equal(hash_of_first(n).c_str(), other.c_str());
        }

        all.push_back(hash_of_first(n));
    }
}

void another_key_makes_another_value(void **)
{
    uint8_t key[sl::kSipHashKeySize] = {};
    uint8_t first[sl::kSipHashSize];
    uint8_t second[sl::kSipHashSize];

    sl::siphash128(nullptr, 0, "client", key, first);

    for (size_t i = 0; i < sizeof(key); i++) {
        key[i] ^= 1;
        sl::siphash128(nullptr, 0, "client", key, second);
        assert_memory_not_equal(first, second, sizeof(first));
        key[i] ^= 1;
    }
}

void a_number_before_the_text_makes_another_value(void **)
{
    std::set<uint64_t> all;

    for (uint64_t number = 0; number < 100; number++) {
        for (std::string_view text : {"", "a", "login"}) {
            all.insert(sl::public_siphash64(number, text));
            assert_true(sl::public_siphash64(number, text)
                        == sl::public_siphash64(number, std::string(text)));
        }
    }

    assert_int_equal(all.size(), 300);
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(known_values_come_out),
        cmocka_unit_test(every_length_has_a_value_of_its_own),
        cmocka_unit_test(another_key_makes_another_value),
        cmocka_unit_test(a_number_before_the_text_makes_another_value),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
