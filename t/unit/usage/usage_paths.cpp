/* What is a path, and which paths lead where. */

#include "usage/pure/sl_usage_paths.h"

#include <initializer_list>
#include <string>
#include <string_view>

#include "unit.h"

namespace {

using sl::UsagePaths;

void assert_paths(bool expected, std::initializer_list<std::string> texts)
{
    for (const std::string &text : texts) {
        UsagePaths paths;

        if (UsagePaths::is_path(text) != expected || paths.add(text) != expected
            || paths.is_empty() == expected)
        {
            fail_msg("\"%s\" is%s taken for a path", text.c_str(),
                     expected ? " not" : "");
        }
    }
}

std::string repeated(std::string_view text, size_t times)
{
    std::string all;

    for (size_t i = 0; i < times; i++) {
        all += text;
    }

    return all;
}

void names_are_separated_by_dots(void **)
{
    assert_paths(true, {"usage", "usage.total_tokens", "a.b.c", "0", "a.0.b",
                        "total tokens", "\xc3\xa9", "a:b/c"});
}

void no_name_is_empty(void **)
{
    assert_paths(false, {"", ".", "a.", ".a", "a..b", "..", "a.b."});
}

void a_name_has_64_bytes_at_most(void **)
{
    std::string longest(64, 'a');

    assert_paths(true, {longest, "b." + longest, longest + ".b"});
    assert_paths(false, {longest + "a", "b." + longest + "a", longest + "a.b"});
}

void a_path_has_8_names_at_most(void **)
{
    assert_paths(true, {"a" + repeated(".a", 7)});
    assert_paths(false, {"a" + repeated(".a", 8), "a" + repeated(".a", 1000)});
}

void there_are_8_paths_at_most(void **)
{
    UsagePaths paths;

    for (int i = 0; i < 8; i++) {
        assert_false(paths.is_full());
        assert_true(paths.add("a"));
    }

    assert_true(paths.is_full());
    assert_false(paths.add("a"));
    assert_int_equal(paths.all(), 0xff);
}

void what_is_no_path_leaves_nothing_behind(void **)
{
    UsagePaths paths;

    assert_false(paths.add("a.b..c"));
    assert_int_equal(paths.all(), 0);
    assert_int_equal(paths.continuing(1), 0);
    assert_int_equal(paths.named("a", 0, 0xff), 0);
}

void names_are_found_at_their_level(void **)
{
    UsagePaths paths;

    assert_true(paths.add("usage.total"));
    assert_true(paths.add("meta.total"));
    assert_true(paths.add("usage"));

    assert_int_equal(paths.all(), 0b111);
    assert_int_equal(paths.named("usage", 0, 0b111), 0b101);
    assert_int_equal(paths.named("usage", 0, 0b110), 0b100);
    assert_int_equal(paths.named("usage", 1, 0b111), 0);
    assert_int_equal(paths.named("total", 1, 0b111), 0b011);
    assert_int_equal(paths.named("", 0, 0b111), 0);
    assert_int_equal(paths.named("usagf", 0, 0b111), 0);
    assert_int_equal(paths.named(std::string(1000, 'u'), 0, 0b111), 0);
}

void paths_end_and_continue(void **)
{
    UsagePaths paths;

    assert_true(paths.add("a.b"));
    assert_true(paths.add("a"));
    assert_true(paths.add("a.b.c.d.e.f.g.h"));

    assert_int_equal(paths.continuing(1), 0b101);
    assert_int_equal(paths.continuing(2), 0b100);
    assert_int_equal(paths.continuing(8), 0);
    assert_int_equal(paths.ending(1), 0b010);
    assert_int_equal(paths.ending(2), 0b001);
    assert_int_equal(paths.ending(8), 0b100);
}

void digits_are_an_index_as_well(void **)
{
    UsagePaths paths;

    assert_true(paths.add("0"));
    assert_true(paths.add("10"));
    assert_true(paths.add("01"));
    assert_true(paths.add("1a"));
    assert_true(paths.add("99999999999999999999"));
    assert_true(paths.add("-1"));

    assert_int_equal(paths.indexing(0), 0b000011);
    assert_int_equal(paths.indexed(0, 0, 0xff), 0b000001);
    assert_int_equal(paths.indexed(10, 0, 0xff), 0b000010);
    assert_int_equal(paths.indexed(1, 0, 0xff), 0);
    assert_int_equal(paths.named("0", 0, 0xff), 0b000001);
    assert_int_equal(paths.named("01", 0, 0xff), 0b000100);
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(names_are_separated_by_dots),
        cmocka_unit_test(no_name_is_empty),
        cmocka_unit_test(a_name_has_64_bytes_at_most),
        cmocka_unit_test(a_path_has_8_names_at_most),
        cmocka_unit_test(there_are_8_paths_at_most),
        cmocka_unit_test(what_is_no_path_leaves_nothing_behind),
        cmocka_unit_test(names_are_found_at_their_level),
        cmocka_unit_test(paths_end_and_continue),
        cmocka_unit_test(digits_are_an_index_as_well),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
