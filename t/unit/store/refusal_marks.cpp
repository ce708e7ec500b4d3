/* Until when somebody need look for a remembered refusal. */

#include "store/pure/sl_refusal_marks.h"

#include <set>
#include <string>

#include "unit.h"

namespace {

using sl::RefusalMarks;

void the_longest_refusal_counts(void **)
{
    RefusalMarks marks{};

    assert_false(marks.may_have_refused(0, 0));
    marks.refused_until(0, 100);
    marks.refused_until(0, 50);
    assert_true(marks.may_have_refused(0, 99));
    assert_false(marks.may_have_refused(0, 100));
}

sl::LimitQuery limit_at(sl::RefusalMark mark)
{
    sl::LimitQuery limit{"zone", "key", 1000,  1,    1, sl::Algorithm::kLog,
                         0,      false, false, false};

    limit.refusal_mark = mark;

    return limit;
}

void a_refusal_is_looked_for_until_it_ends(void **)
{
    RefusalMarks marks{};

    marks.refused(limit_at(7), sl::LimitState{false, false, 1, 300}, 50);
    assert_true(marks.may_have_refused(7, 349));
    assert_false(marks.may_have_refused(7, 350));
}

void a_long_ban_is_looked_for_no_longer_than_a_window(void **)
{
    RefusalMarks marks{};
    sl::LimitState banned{false, false, 1, 1000000};

    banned.is_banned = true;
    marks.refused(limit_at(7), banned, 50);
    assert_true(marks.may_have_refused(7, 1049));
    assert_false(marks.may_have_refused(7, 1050));
}

void other_marks_are_none_of_it(void **)
{
    RefusalMarks marks{};

    marks.refused_until(7, 100);
    assert_false(marks.may_have_refused(6, 99));
    assert_true(marks.may_have_refused(7, 99));
    assert_false(marks.may_have_refused(8, 99));
}

void nothing_is_void_at_first(void **)
{
    RefusalMarks marks{};

    for (size_t i = 0; i < RefusalMarks::kCount; i++) {
        assert_int_equal(marks.void_until(i), 0);
    }
}

void the_latest_change_counts(void **)
{
    RefusalMarks marks{};

    marks.forget_until(7, 100);
    marks.forget_until(7, 50);
    assert_int_equal(marks.void_until(7), 100);
    marks.forget_until(7, 101);
    assert_int_equal(marks.void_until(7), 101);
    assert_int_equal(marks.void_until(6), 0);
    assert_int_equal(marks.void_until(8), 0);
}

void a_change_is_no_refusal(void **)
{
    RefusalMarks marks{};

    marks.forget_until(7, 100);
    assert_false(marks.may_have_refused(7, 0));
    marks.refused_until(7, 200);
    assert_true(marks.may_have_refused(7, 199));
    assert_int_equal(marks.void_until(7), 100);
}

void what_is_void_need_not_be_looked_for(void **)
{
    RefusalMarks marks{};

    marks.refused_until(7, 1000);
    marks.refused_until(8, 1000);
    marks.forget_until(7, 100);
    assert_false(marks.may_have_refused(7, 101));
    assert_true(marks.may_have_refused(8, 101));
    marks.refused_until(7, 200);
    assert_true(marks.may_have_refused(7, 199));
    assert_false(marks.may_have_refused(7, 200));
}

void what_is_ignored_is_not_void(void **)
{
    RefusalMarks marks{};

    marks.refused_until(7, 1000);
    marks.ignore_until(7, 100);
    marks.ignore_until(7, 50);
    assert_int_equal(marks.ignored_until(7), 100);
    assert_int_equal(marks.void_until(7), 0);
    assert_true(marks.may_have_refused(7, 101));
    assert_int_equal(marks.ignored_until(8), 0);
}

void what_is_void_is_ignored(void **)
{
    RefusalMarks marks{};

    marks.forget_until(7, 100);
    assert_int_equal(marks.ignored_until(7), 100);
    marks.ignore_until(7, 200);
    assert_int_equal(marks.void_until(7), 100);
}

void marks_that_share_a_place_share_what_is_known(void **)
{
    RefusalMarks marks{};

    marks.refused_until(7 + RefusalMarks::kCount, 100);
    assert_true(marks.may_have_refused(7, 99));
    marks.forget_until(7, 50);
    assert_int_equal(marks.void_until(7 + RefusalMarks::kCount), 50);
}

void a_zone_of_a_store_always_has_the_same_mark(void **)
{
    assert_true(RefusalMarks::mark_of("login", 5)
                == RefusalMarks::mark_of(std::string("log") + "in", 5));
}

void every_zone_of_every_store_has_a_mark_of_its_own(void **)
{
    std::set<sl::RefusalMark> marks;

    for (uint64_t store : {uint64_t{0}, uint64_t{1}, UINT64_MAX}) {
        for (int zone = 0; zone < 1000; zone++) {
            marks.insert(
                RefusalMarks::mark_of("zone" + std::to_string(zone), store));
        }
    }

    assert_int_equal(marks.size(), 3000);
    assert_true(marks.count(sl::kNoMark) == 0);
}

void marks_are_spread_over_the_places(void **)
{
    std::set<size_t> places;

    for (size_t i = 0; i < 10 * RefusalMarks::kCount; i++) {
        size_t place = RefusalMarks::place_of(
            RefusalMarks::mark_of("zone" + std::to_string(i), 1));

        assert_true(place < RefusalMarks::kCount);
        places.insert(place);
    }

    assert_true(places.size() > RefusalMarks::kCount * 9 / 10);
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_refusal_counts),
        cmocka_unit_test(a_refusal_is_looked_for_until_it_ends),
        cmocka_unit_test(a_long_ban_is_looked_for_no_longer_than_a_window),
        cmocka_unit_test(other_marks_are_none_of_it),
        cmocka_unit_test(nothing_is_void_at_first),
        cmocka_unit_test(the_latest_change_counts),
        cmocka_unit_test(a_change_is_no_refusal),
        cmocka_unit_test(what_is_void_need_not_be_looked_for),
        cmocka_unit_test(what_is_ignored_is_not_void),
        cmocka_unit_test(what_is_void_is_ignored),
        cmocka_unit_test(marks_that_share_a_place_share_what_is_known),
        cmocka_unit_test(a_zone_of_a_store_always_has_the_same_mark),
        cmocka_unit_test(every_zone_of_every_store_has_a_mark_of_its_own),
        cmocka_unit_test(marks_are_spread_over_the_places),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
