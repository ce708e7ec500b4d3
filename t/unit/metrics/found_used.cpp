/* In which tenth of max something is, exactly and for every max. */

#include "metrics/pure/sl_found_used.h"

#include "unit.h"

namespace {

using sl::tenth_of;

constexpr int64_t kLargestMax = 1000000000000000;

void a_tenth_begins_with_what_belongs_to_it(void **)
{
    for (int64_t used = 0; used < 100; used++) {
        assert_int_equal(tenth_of(used, 100), used / 10);
    }
}

void all_of_max_and_more_is_in_the_last_tenth(void **)
{
    for (int64_t max : {int64_t{1}, int64_t{7}, int64_t{100}, kLargestMax}) {
        assert_int_equal(tenth_of(max, max), 9);
        assert_int_equal(tenth_of(max + 1, max), 9);
        assert_int_equal(tenth_of(INT64_MAX, max), 9);
    }
}

void of_a_small_max_some_tenths_are_empty(void **)
{
    assert_int_equal(tenth_of(0, 1), 0);
    assert_int_equal(tenth_of(1, 2), 5);
    assert_int_equal(tenth_of(1, 3), 3);
    assert_int_equal(tenth_of(2, 3), 6);
    assert_int_equal(tenth_of(6, 7), 8);
}

void every_small_max_follows_the_definition(void **)
{
    for (int64_t max = 1; max <= 300; max++) {
        for (int64_t used = 0; used < max; used++) {
            assert_int_equal(tenth_of(used, max), 10 * used / max);
        }
    }
}

/* Ten times this is no problem yet, so the definition can be asked. */
void boundaries_are_exact_up_to_the_largest_max(void **)
{
    for (int64_t max = kLargestMax - 20; max <= kLargestMax; max++) {
        for (int64_t tenth = 0; tenth <= 10; tenth++) {
            int64_t near = max / 10 * tenth;

            for (int64_t used = near - 20; used <= near + 20; used++) {
                if (used >= 0 && used < max) {
                    assert_int_equal(tenth_of(used, max), 10 * used / max);
                }
            }
        }
    }
}

void what_no_max_can_be_does_not_overflow(void **)
{
    assert_int_equal(tenth_of(INT64_MAX, INT64_MAX), 9);
    assert_int_equal(tenth_of(INT64_MAX / 2, INT64_MAX), 4);
    assert_int_equal(tenth_of(INT64_MAX / 10 * 9, INT64_MAX), 8);
    assert_int_equal(tenth_of(0, INT64_MAX), 0);
}

void less_than_nothing_is_in_the_first(void **)
{
    assert_int_equal(tenth_of(-1, 1), 0);
    assert_int_equal(tenth_of(INT64_MIN, kLargestMax), 0);
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_tenth_begins_with_what_belongs_to_it),
        cmocka_unit_test(all_of_max_and_more_is_in_the_last_tenth),
        cmocka_unit_test(of_a_small_max_some_tenths_are_empty),
        cmocka_unit_test(every_small_max_follows_the_definition),
        cmocka_unit_test(boundaries_are_exact_up_to_the_largest_max),
        cmocka_unit_test(what_no_max_can_be_does_not_overflow),
        cmocka_unit_test(less_than_nothing_is_in_the_first),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
