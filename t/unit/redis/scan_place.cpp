/* Where a search has come to, as operators are told it and tell it back. */

#include "redis/pure/sl_scan_place.h"

#include "unit.h"

namespace {

using namespace std::string_view_literals;

std::string written(const sl::ScanPlace &place)
{
    char text[sl::ScanPlace::kMaxText];

    return std::string(text, place.write(text));
}

void a_place_is_read_as_it_was_written(void **)
{
    for (std::string text : {"0.0", "0.17", "16383.18446744073709551615",
                             "5461.0", "1.9223372036854775808"})
    {
        sl::ScanPlace place;

        assert_true(place.parse(text));
        assert_text_equal(written(place), text);
        assert_int_equal(place.slot, std::stoul(text));
        assert_text_equal(place.cursor(), text.substr(text.find('.') + 1));
        assert_int_equal(place.is_at_start(), place.cursor() == "0");
    }
}

void without_any_it_is_the_beginning(void **)
{
    sl::ScanPlace place;

    assert_true(place.parse("7.7"));
    assert_true(place.parse(""));
    assert_int_equal(place.slot, 0);
    assert_true(place.is_at_start());
}

void nothing_else_is_a_place(void **)
{
    for (std::string_view text : {"."sv,
                                  "0"sv,
                                  "0."sv,
                                  ".0"sv,
                                  "00.0"sv,
                                  "0.00"sv,
                                  "01.0"sv,
                                  "0.01"sv,
                                  "16384.0"sv,
                                  "-1.0"sv,
                                  "0.-1"sv,
                                  "0.0.0"sv,
                                  "0.0 "sv,
                                  " 0.0"sv,
                                  "0.+1"sv,
                                  "+1.0"sv,
                                  "a.0"sv,
                                  "0.a"sv,
                                  "0x1.0"sv,
                                  "0.0\0"sv,
                                  "4294967296.0"sv,
                                  "99999999999999999999.0"sv,
                                  "0.18446744073709551616"sv,
                                  "0.99999999999999999999"sv,
                                  "0.100000000000000000000"sv,
                                  "0,0"sv})
    {
        sl::ScanPlace place;

        assert_false(place.parse(text));
    }
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_place_is_read_as_it_was_written),
        cmocka_unit_test(without_any_it_is_the_beginning),
        cmocka_unit_test(nothing_else_is_a_place),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
