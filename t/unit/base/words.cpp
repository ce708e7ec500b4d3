/* Letters, digits and words, and how they are written. */

#include "base/pure/sl_words.h"

#include <algorithm>
#include <string>

#include "unit.h"

namespace {

void words_are_the_same_in_upper_and_lower_case(void **)
{
    assert_true(sl::is_same_word("", ""));
    assert_true(sl::is_same_word("Accept", "aCCEPT"));
    assert_true(sl::is_same_word("a-1_.Z", "A-1_.z"));
}

void other_words_are_others(void **)
{
    assert_false(sl::is_same_word("accept", "accept-"));
    assert_false(sl::is_same_word("accept", "accep"));
    assert_false(sl::is_same_word("", "a"));
    assert_false(sl::is_same_word("a", "b"));
}

void only_letters_have_two_cases(void **)
{
    /* these differ by the same bit */
    assert_false(sl::is_same_word("@", "`"));
    assert_false(sl::is_same_word("[", "{"));
    assert_false(sl::is_same_word("\xc4", "\xe4"));
}

void letters_and_digits_are_those_of_ascii(void **)
{
    constexpr std::string_view kAll = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "abcdefghijklmnopqrstuvwxyz0123456789";

    for (int ch = 0; ch < 256; ch++) {
        bool is_one = kAll.find(static_cast<char>(ch)) != kAll.npos;

        assert_int_equal(sl::is_letter_or_digit(static_cast<char>(ch)), is_one);
    }
}

void a_variable_ends_where_its_name_does(void **)
{
    assert_int_equal(sl::variable_name_size(""), 0);
    assert_int_equal(sl::variable_name_size("-a"), 0);
    assert_int_equal(sl::variable_name_size("remote_addr"), 11);
    assert_int_equal(sl::variable_name_size("arg_A1}x"), 6);
    assert_int_equal(sl::variable_name_size("a$b"), 1);
}

void what_is_appended_ends_where_the_next_begins(void **)
{
    char text[4] = {};
    char *end = sl::append(text, "ab");

    end = sl::append(end, "");
    end = sl::append(end, "c");

    assert_ptr_equal(end, text + 3);
    assert_text_equal(text, "abc");
}

void every_byte_is_two_hex_digits(void **)
{
    for (int byte = 0; byte < 256; byte++) {
        char text[3] = {};
        char *end = sl::append_hex(text, static_cast<uint8_t>(byte));

        assert_ptr_equal(end, text + 2);
        assert_int_equal(sl::hex_digit(text[0]) * 16 + sl::hex_digit(text[1]),
                         byte);
    }

    char text[3] = {};

    sl::append_hex(text, 0xaf);
    assert_text_equal(text, "af");
}

void hex_digits_are_of_either_case(void **)
{
    constexpr std::string_view kLower = "0123456789abcdef";
    constexpr std::string_view kUpper = "0123456789ABCDEF";

    for (int ch = 0; ch < 256; ch++) {
        size_t value = std::min(kLower.find(static_cast<char>(ch)),
                                kUpper.find(static_cast<char>(ch)));

        assert_int_equal(sl::hex_digit(static_cast<char>(ch)),
                         value == kLower.npos ? -1 : static_cast<int>(value));
    }
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(words_are_the_same_in_upper_and_lower_case),
        cmocka_unit_test(other_words_are_others),
        cmocka_unit_test(only_letters_have_two_cases),
        cmocka_unit_test(letters_and_digits_are_those_of_ascii),
        cmocka_unit_test(a_variable_ends_where_its_name_does),
        cmocka_unit_test(what_is_appended_ends_where_the_next_begins),
        cmocka_unit_test(every_byte_is_two_hex_digits),
        cmocka_unit_test(hex_digits_are_of_either_case),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
