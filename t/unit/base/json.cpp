/* What is taken for JSON: templates are checked with it. */

#include "base/pure/sl_json.h"

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "unit.h"

namespace {

using namespace std::string_view_literals;

/* --- is_json --- */

/* Memory of just the size, so that use of more is noticed. */
void assert_json(bool expected, std::initializer_list<std::string_view> texts)
{
    for (std::string_view text : texts) {
        std::vector<char> copy(text.begin(), text.end());

        if (sl::is_json({copy.data(), copy.size()}) != expected) {
            fail_msg("\"%.*s\" is%s taken for JSON",
                     static_cast<int>(text.size()), text.data(),
                     expected ? " not" : "");
        }
    }
}

void every_kind_of_value_is_json(void **)
{
    assert_json(true,
                {"null", "true", "false", "0", "-1.5", "1e9", "2E-3", "1.5e+10",
                 "\"\"", "\"text\"", "[]", "{}", "[1]", "{\"a\":1}"});
}

void values_nest(void **)
{
    assert_json(true, {"[[],{}]", "{\"a\":{\"b\":[1,2,{\"c\":null}]}}",
                       "[1,\"a\",true,null,[],{}]"});
}

void white_space_may_stand_between_anything(void **)
{
    assert_json(true, {" null ", "\t[ 1 ,\n2\r]\n",
                       " { \"a\" : 1 , \"b\" : 2 } ", "[ ]", "{ }"});
}

void escapes_are_json(void **)
{
    assert_json(true, {R"("\"\\\/\b\f\n\r\t")", R"("\u0041\uABCD\uabcd")"});
    assert_json(false, {R"("\x41")", R"("\u004")", R"("\u00g0")", R"("\")",
                        R"("\ ")", R"("\u")"});
}

void nothing_is_not_json(void **)
{
    assert_json(false, {"", " ", "\n"});
}

void what_is_not_closed_is_not_json(void **)
{
    assert_json(false,
                {"[", "{", "[1", "[1,", "{\"a\"", "{\"a\":", "{\"a\":1",
                 "{\"a\":1,", "\"", "\"a", "\"\\", "[[1]", "{\"a\":[1}"});
}

void what_is_too_much_is_not_json(void **)
{
    assert_json(false, {"]", "}", "1 2", "[1]]", "{}{}", "[1,]", "[,1]", "[,]",
                        "{\"a\":1,}", "{,}", "nullnull", "-null", "\"a\"\"b\"",
                        "null1", "[1 2]", "{\"a\":1 \"b\":2}", "1,2"});
}

void keys_are_strings(void **)
{
    assert_json(false, {"{1:1}", "{null:1}", "{a:1}", "{\"a\"}", "{:1}",
                        "{[]:1}", "{{}:1}"});
}

void what_begins_wrong_does_not_become_right(void **)
{
    assert_json(false, {"{[1]", "[}1", "{1", "[:1]", "\"a", "{\"a\":[1]]"});
}

void words_are_spelled_in_full(void **)
{
    assert_json(false, {"nul", "True", "tru", "falsee", "undefined", "NaN"});
}

void numbers_are_as_json_has_them(void **)
{
    assert_json(false, {"01", "+1", ".5", "1.", "1e", "1e+", "0x10", "1e1.5",
                        "--1", "1-", "1.2.3", "-"});
}

void control_characters_are_not_in_strings(void **)
{
    assert_json(false, {"\"\n\"", "\"\t\"", "\"\0\""sv, "\"\x1f\""});
    assert_json(true, {"\"\x7f\"", "\"\xc3\xa4\""});
}

void there_is_an_end_to_nesting(void **)
{
    auto nested = [](size_t depth) {
        return std::string(depth, '[') + std::string(depth, ']');
    };

    assert_true(sl::is_json(nested(60)));
    assert_false(sl::is_json(nested(1000000)));
    assert_false(sl::is_json(std::string(1000000, '[')));
    assert_false(sl::is_json(std::string(1000000, '{')));
}

/* --- is_json_number --- */

void assert_numbers(bool expected,
                    std::initializer_list<std::string_view> texts)
{
    for (std::string_view text : texts) {
        std::vector<char> copy(text.begin(), text.end());

        if (sl::is_json_number({copy.data(), copy.size()}) != expected) {
            fail_msg("\"%.*s\" is%s taken for a number",
                     static_cast<int>(text.size()), text.data(),
                     expected ? " not" : "");
        }
    }
}

void whole_numbers_are_json(void **)
{
    assert_numbers(true, {"0", "1", "9", "10", "429", "2147483648",
                          "99999999999999999999999999"});
}

void numbers_below_zero_are_json(void **)
{
    assert_numbers(true, {"-1", "-0", "-10", "-0.5"});
}

void fractions_are_json(void **)
{
    assert_numbers(true, {"0.5", "1.0", "0.003", "12.50", "0.0", "-12.5"});
}

void a_leading_zero_is_not_json(void **)
{
    assert_numbers(false, {"00", "01", "007", "-01", "-00", "01.5", "00.5"});
}

void a_number_needs_digits_wherever_there_can_be_some(void **)
{
    assert_numbers(false,
                   {"", {}, "-", ".", "-.", ".5", "-.5", "1.", "-1.", "0."});
}

void other_ways_to_write_numbers_are_not_json(void **)
{
    assert_numbers(false,
                   {"+1", "0x10", "1,5", "1_000", "NaN", "Infinity",
                    "-Infinity", "inf", "1/2", "1r", "--1", "- 1", "1-"});
}

void exponents_are_left_out(void **)
{
    assert_numbers(false, {"1e3", "1E3", "1.5e3", "1e+3", "1e", "0e0"});
}

void one_point_is_enough(void **)
{
    assert_numbers(false, {"1.2.3", "1..2", "127.0.0.1"});
}

void nothing_may_stand_around_a_number(void **)
{
    assert_numbers(false, {" 1", "1 ", "1\n", "\t1", "1.5 ", "1\0"sv, "\0001"sv,
                           "1.\0005"sv, "1,", "1}", "1\"", "1\xff"});
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_value_is_json),
        cmocka_unit_test(values_nest),
        cmocka_unit_test(white_space_may_stand_between_anything),
        cmocka_unit_test(escapes_are_json),
        cmocka_unit_test(nothing_is_not_json),
        cmocka_unit_test(what_is_not_closed_is_not_json),
        cmocka_unit_test(what_is_too_much_is_not_json),
        cmocka_unit_test(keys_are_strings),
        cmocka_unit_test(what_begins_wrong_does_not_become_right),
        cmocka_unit_test(words_are_spelled_in_full),
        cmocka_unit_test(numbers_are_as_json_has_them),
        cmocka_unit_test(control_characters_are_not_in_strings),
        cmocka_unit_test(there_is_an_end_to_nesting),
        cmocka_unit_test(whole_numbers_are_json),
        cmocka_unit_test(numbers_below_zero_are_json),
        cmocka_unit_test(fractions_are_json),
        cmocka_unit_test(a_leading_zero_is_not_json),
        cmocka_unit_test(a_number_needs_digits_wherever_there_can_be_some),
        cmocka_unit_test(other_ways_to_write_numbers_are_not_json),
        cmocka_unit_test(exponents_are_left_out),
        cmocka_unit_test(one_point_is_enough),
        cmocka_unit_test(nothing_may_stand_around_a_number),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
