/* Lists of statuses: how they are written, and what is in them. */

#include "request/pure/sl_status_list.h"

#include <functional>
#include <initializer_list>
#include <vector>

#include "unit.h"

namespace {

using namespace std::string_view_literals;
using sl::StatusList;
using Texts = std::initializer_list<std::string_view>;

/* From memory of just that size, so that reading past its end is noticed. */
bool read(StatusList *list, std::string_view text)
{
    std::vector<char> copy(text.begin(), text.end());

    return list->read({copy.data(), copy.size()});
}

bool is_list(std::string_view text)
{
    StatusList list{};

    return read(&list, text);
}

void assert_no_list(Texts texts)
{
    for (std::string_view text : texts) {
        if (is_list(text)) {
            fail_msg("\"%.*s\" is taken for a list",
                     static_cast<int>(text.size()), text.data());
        }
    }
}

/* Just these are in it, of all there could be. */
void assert_holds(const StatusList &list,
                  const std::function<bool(unsigned)> &expected)
{
    for (unsigned status = 0; status <= 1100; status++) {
        if (list.contains(status) != expected(status)) {
            fail_msg("%u is%s in it", status,
                     list.contains(status) ? "" : " not");
        }
    }
}

void assert_list(std::string_view text,
                 const std::function<bool(unsigned)> &expected)
{
    StatusList list{};

    assert_true(read(&list, text));
    assert_holds(list, expected);
}

void an_empty_list_holds_nothing(void **)
{
    assert_holds(StatusList{}, [](unsigned) { return false; });
}

void one_status_is_a_list(void **)
{
    for (unsigned status = 100; status <= 599; status++) {
        assert_list(std::to_string(status),
                    [=](unsigned s) { return s == status; });
    }
}

void a_class_is_a_hundred_statuses(void **)
{
    for (unsigned hundreds = 1; hundreds <= 5; hundreds++) {
        assert_list(std::to_string(hundreds) + "xx",
                    [=](unsigned s) { return s / 100 == hundreds; });
    }
}

void commas_separate_statuses_and_classes(void **)
{
    assert_list("401,403,5xx", [](unsigned s) {
        return s == 401 || s == 403 || s / 100 == 5;
    });
    assert_list("5xx,403,401", [](unsigned s) {
        return s == 401 || s == 403 || s / 100 == 5;
    });
    assert_list("1xx,2xx,3xx,4xx,5xx",
                [](unsigned s) { return s >= 100 && s <= 599; });
}

void what_is_given_twice_is_in_it_once(void **)
{
    assert_list("404,404", [](unsigned s) { return s == 404; });
    assert_list("404,4xx,404", [](unsigned s) { return s / 100 == 4; });
}

void a_long_list_is_read_to_its_end(void **)
{
    std::string text = "100";

    for (unsigned status = 102; status <= 599; status += 2) {
        text += "," + std::to_string(status);
    }

    assert_list(text,
                [](unsigned s) { return s >= 100 && s <= 599 && s % 2 == 0; });
}

void reading_again_adds(void **)
{
    StatusList list{};

    assert_true(read(&list, "401"));
    assert_true(read(&list, "5xx"));
    assert_holds(list, [](unsigned s) { return s == 401 || s / 100 == 5; });
}

void a_status_out_of_reach_is_in_no_list(void **)
{
    StatusList list{};

    assert_true(read(&list, "1xx,2xx,3xx,4xx,5xx"));

    for (unsigned status : {0u, 1u, 99u, 600u, 999u, 65536u + 200u,
                            0x80000000u + 200u, UINT32_MAX})
    {
        assert_false(list.contains(status));
    }
}

void only_statuses_from_100_to_599_can_be_listed(void **)
{
    assert_no_list({"000", "001", "099", "600", "601", "699", "999"});
    assert_no_list({"0xx", "6xx", "9xx"});
}

void a_status_has_three_digits(void **)
{
    assert_no_list({"4", "40", "99", "4010", "0401", "1000", "4xxx"});
}

void a_class_is_a_digit_and_two_small_x(void **)
{
    assert_no_list({"4x", "40x", "4x0", "4x1", "x00", "xxx", "xx", "x", "4XX",
                    "4xX", "4Xx", "4**", "4__"});
}

void an_empty_place_is_no_status(void **)
{
    assert_no_list({"", std::string_view{}, ",", ",,", "401,", ",401",
                    "401,,403", "401,403,", ",5xx"});
}

void nothing_but_commas_separates(void **)
{
    assert_no_list({"401 403", "401, 403", "401 ,403", "401;403", "401|403",
                    "401-403", "401,403\n", " 401", "401 ", "\t401"});
}

void words_and_signs_are_no_statuses(void **)
{
    assert_no_list({"abc", "all", "off", "-01", "+40", "4.1", "!401", "=401"});
}

void one_wrong_place_spoils_the_list(void **)
{
    assert_no_list({"401,403,600", "600,401", "401,4x,403", "5xx,abc",
                    "5xx,6xx", "401,403,5xx,"});
}

void a_nul_is_a_byte_like_others(void **)
{
    assert_no_list(
        {"401\0"sv, "\000401"sv, "40\0"sv, "401\000403"sv, "401,\000403"sv});
}

void every_text_of_three_likely_characters_is_judged_right(void **)
{
    constexpr std::string_view kLikely = "0123456789xX,/: \0\xff"sv;

    for (char a : kLikely) {
        for (char b : kLikely) {
            for (char c : kLikely) {
                bool is_class = b == 'x' && c == 'x';
                bool is_status = b >= '0' && b <= '9' && c >= '0' && c <= '9';

                assert_int_equal(is_list(std::string{a, b, c}),
                                 a >= '1' && a <= '5'
                                     && (is_class || is_status));
            }
        }
    }
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_list_holds_nothing),
        cmocka_unit_test(one_status_is_a_list),
        cmocka_unit_test(a_class_is_a_hundred_statuses),
        cmocka_unit_test(commas_separate_statuses_and_classes),
        cmocka_unit_test(what_is_given_twice_is_in_it_once),
        cmocka_unit_test(a_long_list_is_read_to_its_end),
        cmocka_unit_test(reading_again_adds),
        cmocka_unit_test(a_status_out_of_reach_is_in_no_list),
        cmocka_unit_test(only_statuses_from_100_to_599_can_be_listed),
        cmocka_unit_test(a_status_has_three_digits),
        cmocka_unit_test(a_class_is_a_digit_and_two_small_x),
        cmocka_unit_test(an_empty_place_is_no_status),
        cmocka_unit_test(nothing_but_commas_separates),
        cmocka_unit_test(words_and_signs_are_no_statuses),
        cmocka_unit_test(one_wrong_place_spoils_the_list),
        cmocka_unit_test(a_nul_is_a_byte_like_others),
        cmocka_unit_test(every_text_of_three_likely_characters_is_judged_right),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
