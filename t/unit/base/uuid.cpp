/* Version 7 UUIDs: their text, their fixed bits, their order, their randomness.
 */

#include "base/pure/sl_uuid.h"

#include <array>
#include <set>

#include "unit.h"

namespace {

using Random = std::array<uint8_t, sl::kUuidRandomBytes>;

/* The 36 characters; fails if a byte around them is written. */
std::string uuid(uint64_t unix_ms, const Random &random)
{
    char text[1 + sl::kUuidSize + 1];
    text[0] = text[1 + sl::kUuidSize] = '!';

    sl::uuid_v7(unix_ms, random.data(), text + 1);

    assert_int_equal(text[0], '!');
    assert_int_equal(text[1 + sl::kUuidSize], '!');

    return {text + 1, sl::kUuidSize};
}

Random filled(uint8_t byte)
{
    Random random;
    random.fill(byte);
    return random;
}

void the_example_of_the_rfc_comes_out(void **)
{
    Random random = {0x0c, 0xc3, 0x18, 0xc4, 0xdc,
                     0x0c, 0x0c, 0x07, 0x39, 0x8f};

    assert_text_equal(uuid(0x017f22e279b0, random),
                      "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
}

void zeroes_leave_only_version_and_variant(void **)
{
    assert_text_equal(uuid(0, filled(0)),
                      "00000000-0000-7000-8000-000000000000");
}

void ones_do_not_reach_version_and_variant(void **)
{
    assert_text_equal(uuid(0xffffffffffff, filled(0xff)),
                      "ffffffff-ffff-7fff-bfff-ffffffffffff");
}

void every_byte_has_its_place(void **)
{
    Random random = {0xf7, 0x08, 0xc9, 0x0a, 0x0b,
                     0x0c, 0x0d, 0x0e, 0x0f, 0x10};

    assert_text_equal(uuid(0x010203040506, random),
                      "01020304-0506-7708-890a-0b0c0d0e0f10");
}

void all_but_the_hyphens_is_lower_case_hex(void **)
{
    for (int byte = 0; byte < 256; byte++) {
        std::string text = uuid(0x0123456789ab * static_cast<uint64_t>(byte),
                                filled(static_cast<uint8_t>(byte)));

        for (size_t i = 0; i < text.size(); i++) {
            bool hyphen = i == 8 || i == 13 || i == 18 || i == 23;
            std::string_view allowed = hyphen ? "-" : "0123456789abcdef";

            assert_true(allowed.find(text[i]) != allowed.npos);
        }
    }
}

void the_version_is_7_whatever_the_random_bytes(void **)
{
    for (int byte = 0; byte < 256; byte++) {
        Random random = filled(0);
        random[0] = static_cast<uint8_t>(byte);

        std::string text = uuid(0, random);

        assert_int_equal(text[14], '7');
        assert_int_equal(text[15], "0123456789abcdef"[byte & 0x0f]);
    }
}

void the_variant_is_10_whatever_the_random_bytes(void **)
{
    for (int byte = 0; byte < 256; byte++) {
        Random random = filled(0);
        random[2] = static_cast<uint8_t>(byte);

        std::string text = uuid(0, random);

        assert_int_equal(text[19], "89ab"[byte >> 4 & 3]);
        assert_int_equal(text[20], "0123456789abcdef"[byte & 0x0f]);
    }
}

void a_later_millisecond_sorts_after_an_earlier_one(void **)
{
    for (int bit = 0; bit < 48; bit++) {
        uint64_t later = uint64_t{1} << bit;

        assert_true(uuid(later - 1, filled(0xff)) < uuid(later, filled(0)));
        assert_true(uuid(later, filled(0xff)) < uuid(later + 1, filled(0)));
    }
}

void time_beyond_48_bits_does_not_spill_over(void **)
{
    assert_text_equal(uuid(uint64_t{0xabcd} << 48 | 0x123456789abc, filled(0)),
                      uuid(0x123456789abc, filled(0)));
}

void exactly_74_random_bits_make_a_difference(void **)
{
    std::set<std::string> texts;

    for (size_t bit = 0; bit < 8 * sl::kUuidRandomBytes; bit++) {
        Random random = filled(0);
        random[bit / 8] = static_cast<uint8_t>(1 << bit % 8);
        texts.insert(uuid(0, random));
    }

    assert_int_equal(texts.erase(uuid(0, filled(0))), 1);
    assert_int_equal(texts.size(), 74);
}

void the_same_moment_and_bytes_give_the_same_text(void **)
{
    Random random = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};

    assert_text_equal(uuid(1234567, random), uuid(1234567, random));
    assert_true(uuid(1234567, random) != uuid(1234568, random));
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(the_example_of_the_rfc_comes_out),
        cmocka_unit_test(zeroes_leave_only_version_and_variant),
        cmocka_unit_test(ones_do_not_reach_version_and_variant),
        cmocka_unit_test(every_byte_has_its_place),
        cmocka_unit_test(all_but_the_hyphens_is_lower_case_hex),
        cmocka_unit_test(the_version_is_7_whatever_the_random_bytes),
        cmocka_unit_test(the_variant_is_10_whatever_the_random_bytes),
        cmocka_unit_test(a_later_millisecond_sorts_after_an_earlier_one),
        cmocka_unit_test(time_beyond_48_bits_does_not_spill_over),
        cmocka_unit_test(exactly_74_random_bits_make_a_difference),
        cmocka_unit_test(the_same_moment_and_bytes_give_the_same_text),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
