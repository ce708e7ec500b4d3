/* Which responses can be read, by their headers. */

#include "usage/pure/sl_usage_format.h"

#include <initializer_list>
#include <string_view>

#include "unit.h"

namespace {

using sl::is_whole_range;

void assert_whole(bool expected, std::initializer_list<std::string_view> ranges)
{
    for (std::string_view range : ranges) {
        if (is_whole_range(range) != expected) {
            fail_msg("\"%.*s\" is%s taken for a whole document",
                     static_cast<int>(range.size()), range.data(),
                     expected ? " not" : "");
        }
    }
}

void a_range_from_the_first_to_the_last_byte_is_whole(void **)
{
    assert_whole(true, {"bytes 0-0/1", "bytes 0-154/155", "Bytes 0-154/155",
                        "bytes 0-999999999999998/999999999999999"});
}

void a_range_that_leaves_out_a_byte_is_not(void **)
{
    assert_whole(false, {"bytes 1-154/155", "bytes 0-153/155", "bytes 00-1/2",
                         "bytes 10-154/155", "bytes 0-155/155"});
}

void what_is_not_a_range_is_not(void **)
{
    assert_whole(false,
                 {"", "bytes", "bytes 0-", "bytes 0-/", "bytes 0-/0",
                  "bytes 0-/1", "bytes 0-154", "bytes 0-154/", "bytes 0-154/*",
                  "bytes */155", "bytes 0-154/155x", "bytes 0-154/155/155",
                  "items 0-154/155", "bytes 0--1/0", "bytes=0-154/155"});
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_range_from_the_first_to_the_last_byte_is_whole),
        cmocka_unit_test(a_range_that_leaves_out_a_byte_is_not),
        cmocka_unit_test(what_is_not_a_range_is_not),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
