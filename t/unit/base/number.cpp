/* Whole numbers: which texts are one, and that none overflows. */

#include "base/pure/sl_number.h"

#include <initializer_list>
#include <vector>

#include "unit.h"

namespace {

using namespace std::string_view_literals;
using Texts = std::initializer_list<std::string_view>;

/* Reads it from memory of just that size, so that reading past its end is
 * noticed. */
int64_t count(std::string_view text)
{
    std::vector<char> copy(text.begin(), text.end());

    return sl::parse_count({copy.data(), copy.size()});
}

void assert_no_count(Texts texts)
{
    for (std::string_view text : texts) {
        if (count(text) != -1) {
            fail_msg("\"%.*s\" is %lld", static_cast<int>(text.size()),
                     text.data(), static_cast<long long>(count(text)));
        }
    }
}

void digits_are_a_number(void **)
{
    assert_int_equal(count("0"), 0);
    assert_int_equal(count("5"), 5);
    assert_int_equal(count("10"), 10);
    assert_int_equal(count("1234567890"), 1234567890);
}

void every_number_up_to_ten_thousand_is_read(void **)
{
    for (int64_t n = 0; n <= 10000; n++) {
        assert_int_equal(count(std::to_string(n)), n);
    }
}

void leading_zeroes_change_nothing(void **)
{
    assert_int_equal(count("05"), 5);
    assert_int_equal(count("00"), 0);
    assert_int_equal(count("010"), 10);
    assert_int_equal(count(std::string(10000, '0') + "5"), 5);
}

void numbers_beyond_32_bits_are_read(void **)
{
    assert_int_equal(count("2147483647"), 2147483647);
    assert_int_equal(count("2147483648"), 2147483648);
    assert_int_equal(count("4294967295"), 4294967295);
    assert_int_equal(count("4294967296"), 4294967296);
    assert_int_equal(count("5000000000"), 5000000000);
}

void the_largest_number_is_ten_to_the_fifteenth(void **)
{
    assert_int_equal(count("999999999999999"), 999999999999999);
    assert_int_equal(count("1000000000000000"), 1000000000000000);
    assert_int_equal(sl::kLargestCount, 1000000000000000);
    assert_no_count({"1000000000000001", "1000000000000010", "2000000000000000",
                     "9007199254740993"});
}

/* So that a script in Lua and a page in JavaScript can add some of them. */
void sums_of_the_largest_are_exact_as_doubles(void **)
{
    auto sum = static_cast<double>(8 * sl::kLargestCount + 1);

    assert_int_equal(static_cast<int64_t>(sum), 8 * sl::kLargestCount + 1);
}

void what_would_wrap_around_is_no_number(void **)
{
    assert_no_count({"9999999999999999", "9223372036854775807",
                     "9223372036854775808", "18446744073709551615",
                     "18446744073709551616", "18446744073709551621",
                     "99999999999999999999"});
}

void very_many_digits_do_not_overflow(void **)
{
    for (size_t size = 17; size < 3000; size = size * 3 / 2) {
        for (char digit : {'1', '4', '9'}) {
            assert_int_equal(count(std::string(size, digit)), -1);
        }

        assert_int_equal(count("1" + std::string(size, '0')), -1);
    }
}

void nothing_is_no_number(void **)
{
    assert_no_count({"", std::string_view{}});
}

void signs_are_not_digits(void **)
{
    assert_no_count({"-1", "-0", "+5", "-", "+", "5-", "--5"});
}

void fractions_and_exponents_are_no_whole_numbers(void **)
{
    assert_no_count({"1.5", "1.", ".5", "1.0", "1,000", "1e3", "1E3", "0x10",
                     "1_000", "10r/s", "5k"});
}

void spaces_are_not_skipped(void **)
{
    assert_no_count({" 5", "5 ", " ", "\t5", "5\n", "5\r", "1 000"});
}

void words_are_no_numbers(void **)
{
    assert_no_count({"abc", "unlimited", "NaN", "inf", "five"});
}

void a_nul_is_a_byte_like_others(void **)
{
    assert_no_count({"\0"sv, "5\0"sv, "\0005"sv, "5\0005"sv});
}

void no_byte_but_a_digit_is_let_in(void **)
{
    for (int ch = 0; ch < 256; ch++) {
        bool digit = ch >= '0' && ch <= '9';
        std::string one(1, static_cast<char>(ch));

        assert_int_equal(count(one), digit ? ch - '0' : -1);
        assert_int_equal(count("1" + one), digit ? 10 + ch - '0' : -1);
        assert_int_equal(count(one + "1"), digit ? (ch - '0') * 10 + 1 : -1);
    }
}

void digits_of_other_scripts_are_no_digits(void **)
{
    assert_no_count({"\xd9\xa3", "\xef\xbc\x95"});
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(digits_are_a_number),
        cmocka_unit_test(every_number_up_to_ten_thousand_is_read),
        cmocka_unit_test(leading_zeroes_change_nothing),
        cmocka_unit_test(numbers_beyond_32_bits_are_read),
        cmocka_unit_test(the_largest_number_is_ten_to_the_fifteenth),
        cmocka_unit_test(sums_of_the_largest_are_exact_as_doubles),
        cmocka_unit_test(what_would_wrap_around_is_no_number),
        cmocka_unit_test(very_many_digits_do_not_overflow),
        cmocka_unit_test(nothing_is_no_number),
        cmocka_unit_test(signs_are_not_digits),
        cmocka_unit_test(fractions_and_exponents_are_no_whole_numbers),
        cmocka_unit_test(spaces_are_not_skipped),
        cmocka_unit_test(words_are_no_numbers),
        cmocka_unit_test(a_nul_is_a_byte_like_others),
        cmocka_unit_test(no_byte_but_a_digit_is_let_in),
        cmocka_unit_test(digits_of_other_scripts_are_no_digits),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
