/* Numbers of JSON, rounded up exactly. */

#include "usage/pure/sl_usage_number.h"

#include <initializer_list>
#include <string>
#include <vector>

#include "unit.h"

namespace {

struct Read {
    bool is_complete;
    size_t size;
    int64_t rounded_up;
};

/* In two pieces. */
Read read(const std::string &text, size_t split)
{
    std::vector<char> first(text.begin(), text.begin() + split);
    std::vector<char> second(text.begin() + split, text.end());
    sl::UsageNumber number;
    size_t size =
        number.feed(first.data(), first.data() + first.size()) - first.data();

    if (size == split) {
        size += number.feed(second.data(), second.data() + second.size())
                - second.data();
    }

    return {number.is_complete(), size, number.rounded_up()};
}

/* At every position, unless there are very many. */
void assert_rounded_up(const std::string &text, int64_t expected)
{
    for (size_t split = 0; split <= text.size(); split += 1 + text.size() / 100)
    {
        Read number = read(text, split);

        if (!number.is_complete || number.size != text.size()
            || number.rounded_up != expected)
        {
            fail_msg("%.60s is %ld instead of %ld", text.c_str(),
                     static_cast<long>(number.rounded_up),
                     static_cast<long>(expected));
        }
    }
}

std::string zeros(size_t count)
{
    return std::string(count, '0');
}

void whole_numbers_are_themselves(void **)
{
    assert_rounded_up("0", 0);
    assert_rounded_up("7", 7);
    assert_rounded_up("10", 10);
    assert_rounded_up("123456789012345", 123456789012345);
    assert_rounded_up("999999999999999", 999999999999999);
}

void fractions_are_rounded_up(void **)
{
    assert_rounded_up("1.0", 1);
    assert_rounded_up("0.0", 0);
    assert_rounded_up("0.5", 1);
    assert_rounded_up("1.5", 2);
    assert_rounded_up("0.00000000000000000000000000001", 1);
    assert_rounded_up("12.000000000000000000000000001", 13);
    assert_rounded_up("123456789012344.000000000001", 123456789012345);
    assert_rounded_up("2.00000000000000000000000000000", 2);
}

void exponents_move_the_point(void **)
{
    assert_rounded_up("1e3", 1000);
    assert_rounded_up("1.2e1", 12);
    assert_rounded_up("1.25e1", 13);
    assert_rounded_up("1.25E+1", 13);
    assert_rounded_up("125e-1", 13);
    assert_rounded_up("120e-1", 12);
    assert_rounded_up("1e-5", 1);
    assert_rounded_up("0.001e3", 1);
    assert_rounded_up("0.0012e3", 2);
    assert_rounded_up("5e0", 5);
    assert_rounded_up("5e-0", 5);
    assert_rounded_up("5e0000000000000000000000000000001", 50);
}

void nothing_is_lost_in_between(void **)
{
    /* as doubles these would be a little more, or less */
    assert_rounded_up("0.1e1", 1);
    assert_rounded_up("0.3e1", 3);
    assert_rounded_up("1.1e1", 11);
    assert_rounded_up("4.35e2", 435);
    assert_rounded_up("0.000000000000001e15", 1);
    assert_rounded_up("999999999999998.0000000000001", 999999999999999);
}

void zero_stays_zero(void **)
{
    assert_rounded_up("0e5", 0);
    assert_rounded_up("0.000e99999999999999999999999", 0);
    assert_rounded_up("-0", 0);
    assert_rounded_up("-0.0", 0);
    assert_rounded_up("-0e-7", 0);
}

void below_zero_there_is_no_usage(void **)
{
    assert_rounded_up("-1", sl::kNoUsage);
    assert_rounded_up("-0.5", sl::kNoUsage);
    assert_rounded_up("-1e-400", sl::kNoUsage);
    assert_rounded_up("-1e99999999999999999999", sl::kNoUsage);
}

void there_is_a_largest_usage(void **)
{
    assert_rounded_up("1000000000000000", sl::kLargestUsage);
    assert_rounded_up("1000000000000001", sl::kLargestUsage);
    assert_rounded_up("999999999999999.1", sl::kLargestUsage);
    assert_rounded_up("18446744073709551617", sl::kLargestUsage);
    assert_rounded_up("1e15", sl::kLargestUsage);
    assert_rounded_up("1e16", sl::kLargestUsage);
    assert_rounded_up("1e400", sl::kLargestUsage);
}

void numbers_may_be_long(void **)
{
    assert_rounded_up("1" + zeros(5000), sl::kLargestUsage);
    assert_rounded_up("1" + zeros(5000) + "e-5000", 1);
    assert_rounded_up("1" + zeros(5000) + "1e-5000", 11);
    assert_rounded_up("1" + zeros(5000) + "1e-5001", 2);
    assert_rounded_up("0." + zeros(5000) + "1", 1);
    assert_rounded_up("0." + zeros(5000) + "1e5001", 1);
    assert_rounded_up("0." + zeros(5000) + "12e5003", 120);
    assert_rounded_up("3." + zeros(5000), 3);
    assert_rounded_up("3." + zeros(5000) + "1", 4);
}

void exponents_may_be_long(void **)
{
    std::string digits(5000, '9');

    assert_rounded_up("1e" + digits, sl::kLargestUsage);
    assert_rounded_up("1e-" + digits, 1);
    assert_rounded_up("1e" + zeros(5000) + "2", 100);
}

void a_number_ends_where_no_more_of_it_can_stand(void **)
{
    struct Case {
        const char *text;
        size_t size;
    };

    for (const Case &c : std::initializer_list<Case>{{"1,", 1},
                                                     {"01", 1},
                                                     {"-00", 2},
                                                     {"1-", 1},
                                                     {"1+1", 1},
                                                     {"1.2.3", 3},
                                                     {"1e1e1", 3},
                                                     {"1e1.5", 3},
                                                     {"1e1-", 3},
                                                     {"0x10", 1},
                                                     {"12 ", 2},
                                                     {"1}", 1}})
    {
        Read number = read(c.text, 0);

        assert_true(number.is_complete);
        assert_int_equal(number.size, c.size);
    }
}

void a_number_is_incomplete_without_its_digits(void **)
{
    for (const char *text : {"", "-", "1.", "-1.", "1e", "1E+", "1e-", "+1",
                             ".5", "e5", "-x", "--1", "1.e5", "1.+", "1e+-1"})
    {
        assert_false(read(text, 0).is_complete);
    }
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers_are_themselves),
        cmocka_unit_test(fractions_are_rounded_up),
        cmocka_unit_test(exponents_move_the_point),
        cmocka_unit_test(nothing_is_lost_in_between),
        cmocka_unit_test(zero_stays_zero),
        cmocka_unit_test(below_zero_there_is_no_usage),
        cmocka_unit_test(there_is_a_largest_usage),
        cmocka_unit_test(numbers_may_be_long),
        cmocka_unit_test(exponents_may_be_long),
        cmocka_unit_test(a_number_ends_where_no_more_of_it_can_stand),
        cmocka_unit_test(a_number_is_incomplete_without_its_digits),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
