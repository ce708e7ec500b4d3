/* What is remembered of the refusals by other stores. */

#include "store/pure/sl_memory_refusals.h"

#include <string>

#include "memory_table.h"

namespace {

using sl::LimitQuery;
using sl::LimitState;
using sl::Recalled;

void nothing_is_known_at_first(void **)
{
    Table t;
    LimitState state;

    assert_true(
        t.table.recall(limit_of("client", 5), kSecond, sl::kAnyAge, &state)
        == Recalled::kNothing);
    assert_int_equal(t.table.stats().keys, 0);
}

void a_refusal_is_known_until_the_moment_that_was_named(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);

    t.remember(limit, 900, kSecond);

    for (int64_t i = 0; i < 900; i++) {
        assert_int_equal(t.wait(limit, kSecond + i), 900 - i);
    }

    for (int64_t later : {900, 901, 1000, 1000000}) {
        assert_false(t.knows(limit, kSecond + later));
    }
}

void what_is_used_is_what_was_used_then(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);
    LimitState state;

    for (int64_t used : {int64_t{0}, int64_t{5}, int64_t{1} << 40}) {
        t.remember(limit, kSecond, kSecond, used);

        assert_true(t.table.recall(limit, kSecond + 1, sl::kAnyAge, &state)
                    == Recalled::kRefusal);
        assert_int_equal(state.used, used);
        assert_false(state.admits);
        assert_false(state.is_counted);
    }
}

void a_refusal_is_known_of_the_very_same_request_only(void **)
{
    for (unsigned buckets : {0, 6}) {
        Table t;
        LimitQuery limit = limit_of("client", 5, buckets);

        limit.cost = 2;
        t.remember(limit, 60 * kSecond, kSecond);

        LimitQuery other = limit;
        other.max = 6;
        assert_false(t.knows(other, 2 * kSecond));
        other.max = 4;
        assert_false(t.knows(other, 2 * kSecond));

        other = limit;
        other.cost = 1;
        assert_false(t.knows(other, 2 * kSecond));
        other.cost = 3;
        assert_false(t.knows(other, 2 * kSecond));

        other = limit;
        other.window_us++;
        assert_false(t.knows(other, 2 * kSecond));
        other.window_us = kSecond;
        assert_false(t.knows(other, 2 * kSecond));

        for (sl::RefusalMark mark : {0, 1}) {
            other = limit;
            other.refusal_mark = mark;
            assert_false(t.knows(other, 2 * kSecond));
        }

        for (std::string_view zone : {"zon", "zones", "Zone", ""}) {
            other = limit;
            other.zone = zone;
            assert_false(t.knows(other, 2 * kSecond));
        }

        for (std::string_view key : {"clien", "clients", "Client", ""}) {
            other = limit;
            other.key = key;
            assert_false(t.knows(other, 2 * kSecond));
        }

        other = limit;
        other.algorithm = sl::Algorithm::kPacked;
        assert_false(t.knows(other, 2 * kSecond));

        for (unsigned number : {0, 1, 5, 6, 7, 60}) {
            other = limit;
            other.buckets = number;
            assert_int_equal(t.knows(other, 2 * kSecond), number == buckets);
        }

        assert_true(t.knows(limit, 2 * kSecond));
    }
}

void two_stores_may_refuse_the_same_request(void **)
{
    Table t;
    LimitQuery before = limit_of("client", 5);
    LimitQuery after = before;

    before.refusal_mark = 1;
    after.refusal_mark = 2;
    t.remember(before, 10 * kSecond, kSecond);
    assert_false(t.knows(after, 2 * kSecond));

    t.remember(after, 20 * kSecond, 2 * kSecond);
    assert_int_equal(t.wait(before, 3 * kSecond), 8 * kSecond);
    assert_int_equal(t.wait(after, 3 * kSecond), 19 * kSecond);

    t.table.forget(after);
    assert_true(t.knows(before, 3 * kSecond));
    assert_false(t.knows(after, 3 * kSecond));
}

void zones_may_have_the_longest_names(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);
    const std::string zone(64, 'z');
    const std::string other = std::string(63, 'z') + "y";

    limit.zone = zone;
    t.remember(limit, 10 * kSecond, kSecond);
    assert_true(t.knows(limit, 2 * kSecond));

    limit.zone = other;
    assert_false(t.knows(limit, 2 * kSecond));
}

void refusals_of_several_requests_are_known_each(void **)
{
    Table t;

    for (int64_t max = 1; max <= 50; max++) {
        t.remember(limit_of("client", max), max * kSecond, kSecond, max);
    }

    for (int64_t max = 2; max <= 50; max++) {
        assert_int_equal(t.wait(limit_of("client", max), 2 * kSecond),
                         (max - 1) * kSecond);
    }

    assert_false(t.knows(limit_of("client", 1), 2 * kSecond));
}

void a_wait_is_counted_from_the_question_not_from_the_answer(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);

    t.table.remember(limit, LimitState{false, false, 5, 10 * kSecond}, kSecond,
                     3 * kSecond);

    assert_int_equal(t.wait(limit, 3 * kSecond), 8 * kSecond);
    assert_int_equal(t.wait(limit, 4 * kSecond), 7 * kSecond);
    assert_false(t.knows(limit, 11 * kSecond));
}

void a_clock_may_run_faster_by_a_thousandth(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);

    /* 9990009 and a thousandth of it are just less than ten seconds */
    t.remember(limit, 10 * kSecond, kSecond);
    assert_int_equal(t.wait(limit, kSecond + 9990009), 9991);
    assert_false(t.knows(limit, kSecond + 9990010));
    assert_false(t.knows(limit, kSecond + 9999999));
    assert_false(t.knows(limit, 11 * kSecond));

    /* since the question, too */
    t.table.remember(limit, LimitState{false, false, 5, 10 * kSecond}, kSecond,
                     9 * kSecond);
    assert_true(t.knows(limit, kSecond + 9990009));
    assert_false(t.knows(limit, kSecond + 9990010));
}

void after_a_while_one_has_to_ask_again(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);
    LimitState state;

    t.table.remember(limit, LimitState{false, false, 5, 100 * kSecond}, kSecond,
                     3 * kSecond);

    auto recall = [&](int64_t now) {
        return t.table.recall(limit, now, 5 * kSecond, &state);
    };

    /* since the question */
    assert_true(recall(6 * kSecond - 1) == Recalled::kRefusal);
    assert_true(recall(6 * kSecond) == Recalled::kAskAgain);

    /* one, and then nobody for as long */
    assert_true(recall(6 * kSecond) == Recalled::kRefusal);
    assert_int_equal(state.wait_us, 95 * kSecond);
    assert_true(recall(11 * kSecond - 1) == Recalled::kRefusal);
    assert_true(recall(11 * kSecond) == Recalled::kAskAgain);
    assert_true(recall(11 * kSecond + 1) == Recalled::kRefusal);

    /* another answer is as good as the first */
    t.remember(limit, 100 * kSecond, 12 * kSecond);
    assert_true(recall(17 * kSecond - 1) == Recalled::kRefusal);
    assert_true(recall(17 * kSecond) == Recalled::kAskAgain);

    /* what is over need not be checked */
    assert_true(recall(112 * kSecond) == Recalled::kNothing);
}

void to_ask_again_makes_it_no_younger(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);
    LimitState state;

    t.remember(limit, 10 * kSecond, kSecond);
    assert_true(t.table.recall(limit, 9 * kSecond, kSecond, &state)
                == Recalled::kAskAgain);

    assert_true(t.knows(limit, kSecond + 9990009));
    assert_false(t.knows(limit, kSecond + 9990010));
}

void where_no_age_is_young_enough_everybody_asks(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);
    LimitState state;

    t.remember(limit, 10 * kSecond, kSecond);

    for (int i = 0; i < 10; i++) {
        assert_true(t.table.recall(limit, 2 * kSecond, 0, &state)
                    == Recalled::kAskAgain);
    }
}

void any_age_is_young_enough_if_one_says_so(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);
    constexpr int64_t kDay = 86400 * kSecond;

    limit.window_us = 31 * kDay;
    t.remember(limit, 31 * kDay, kSecond);

    for (int64_t day = 0; day <= 30; day++) {
        assert_int_equal(t.wait(limit, kSecond + day * kDay),
                         (31 - day) * kDay);
    }
}

void no_wait_is_longer_than_the_window(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);

    limit.window_us = 10 * kSecond;
    t.remember(limit, int64_t{90} * 365 * 86400 * kSecond, kSecond);
    assert_int_equal(t.wait(limit, kSecond), 10 * kSecond);

    limit.buckets = 3;
    t.remember(limit, int64_t{90} * 365 * 86400 * kSecond, kSecond);
    assert_true(t.wait(limit, kSecond) >= 13 * kSecond);
    assert_true(t.wait(limit, kSecond) <= 14 * kSecond);
}

void if_the_clock_steps_back_a_refusal_lasts_no_longer(void **)
{
    constexpr int64_t kStart = int64_t{1000} * 86400 * kSecond;

    for (int64_t step :
         {int64_t{1}, kSecond, 60 * kSecond, int64_t{900} * 86400 * kSecond})
    {
        Table t;
        LimitQuery limit = limit_of("client", 5);
        LimitState state;
        int64_t now = kStart - step + 3 * kSecond;

        t.remember(limit, 10 * kSecond, kStart);
        assert_int_equal(t.wait(limit, kStart + 3 * kSecond), 7 * kSecond);
        assert_int_equal(t.wait(limit, now), 7 * kSecond);
        assert_int_equal(t.wait(limit, now + 5 * kSecond), 2 * kSecond);
        assert_false(t.knows(limit, now + 7 * kSecond));

        /* what is remembered after it lasts as long as ever */
        now += 7 * kSecond;
        t.remember(limit, 10 * kSecond, now);
        assert_int_equal(t.wait(limit, now + 4 * kSecond), 6 * kSecond);
        assert_true(
            t.table.recall(limit, now + 4 * kSecond, 5 * kSecond, &state)
            == Recalled::kRefusal);
        assert_true(
            t.table.recall(limit, now + 5 * kSecond, 5 * kSecond, &state)
            == Recalled::kAskAgain);
        assert_false(t.knows(limit, now + 10 * kSecond));
    }
}

void if_the_clock_steps_back_before_the_answer_nothing_is_remembered(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);

    t.table.remember(limit, LimitState{false, false, 5, 10 * kSecond},
                     3 * kSecond, 2 * kSecond);
    assert_false(t.knows(limit, 2 * kSecond));
}

void what_is_remembered_last_is_what_counts(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);

    t.remember(limit, 10 * kSecond, kSecond);
    t.remember(limit, 20 * kSecond, 2 * kSecond);
    assert_int_equal(t.wait(limit, 3 * kSecond), 19 * kSecond);

    t.remember(limit, 5 * kSecond, 4 * kSecond);
    assert_int_equal(t.wait(limit, 5 * kSecond), 4 * kSecond);
    assert_false(t.knows(limit, 9 * kSecond));

    /* in the same place */
    assert_int_equal(t.table.stats().keys, 1);
    assert_int_equal(t.table.stats().free_cells, t.table.stats().cells - 2);
}

void what_is_over_is_not_remembered(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);

    for (int64_t wait : {int64_t{0}, int64_t{1}, 2 * kSecond}) {
        t.table.remember(limit, LimitState{false, false, 5, wait}, kSecond,
                         3 * kSecond);
        assert_false(t.knows(limit, kSecond));
        assert_false(t.knows(limit, 3 * kSecond));
    }

    assert_int_equal(t.table.stats().keys, 0);
    assert_int_equal(t.table.stats().free_cells, t.table.stats().cells);

    t.table.remember(limit, LimitState{false, false, 5, 2 * kSecond + 3000},
                     kSecond, 3 * kSecond);
    assert_true(t.knows(limit, 3 * kSecond));
}

void what_is_forgotten_is_not_known_any_more(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);
    LimitQuery other = limit_of("other", 5);
    LimitState state;

    t.table.forget(limit);

    assert_true(t.ask(limit, kSecond, &state));
    t.remember(limit, 10 * kSecond, 2 * kSecond);
    t.remember(other, 10 * kSecond, 2 * kSecond);
    t.table.forget(limit);

    assert_false(t.knows(limit, 3 * kSecond));
    assert_true(t.knows(other, 3 * kSecond));
    assert_int_equal(t.table.stats().keys, 2);
    assert_int_equal(t.table.stats().free_cells, t.table.stats().cells - 4);

    assert_true(t.ask(limit, 4 * kSecond, &state));
    assert_int_equal(state.used, 2);

    t.remember(limit, 10 * kSecond, 5 * kSecond);
    assert_int_equal(t.wait(limit, 6 * kSecond), 9 * kSecond);
}

void a_refusal_takes_two_cells_and_gives_them_back(void **)
{
    Table t;
    uint64_t cells = t.table.stats().cells;

    assert_int_equal(t.table.stats().free_cells, cells);

    t.remember(limit_of("a", 5), 10 * kSecond, kSecond);
    assert_int_equal(t.table.stats().keys, 1);
    assert_int_equal(t.table.stats().free_cells, cells - 2);

    t.remember(limit_of("b", 5), 10 * kSecond, 2 * kSecond);
    assert_int_equal(t.table.stats().keys, 2);
    assert_int_equal(t.table.stats().free_cells, cells - 4);

    /* one that was asked for has another place in line */
    assert_true(t.knows(limit_of("b", 5), 3 * kSecond));

    t.remember(limit_of("c", 5), 10 * kSecond, 20 * kSecond);
    assert_int_equal(t.table.stats().keys, 1);
    assert_int_equal(t.table.stats().free_cells, cells - 2);
    assert_int_equal(t.table.stats().evictions, 0);
}

void refusals_that_are_over_never_fill_the_table(void **)
{
    Table t;

    for (int64_t i = 1; i <= 10000; i++) {
        LimitQuery limit = limit_of("client", i);

        /* a hundred are known at a time */
        t.remember(limit, kSecond, i * kSecond / 100);

        if (i % 3 == 0) {
            assert_true(t.knows(limit, i * kSecond / 100));
        }

        assert_true(t.table.stats().keys <= 150);
    }

    assert_int_equal(t.table.stats().evictions, 0);
}

void a_flood_of_refusals_spares_who_keeps_being_asked_about(void **)
{
    Table t;
    LimitState state;
    int64_t now = kSecond;
    int64_t counted = 0;

    t.remember(limit_of("refused", 5), 3000 * kSecond, now);

    for (int i = 0; i < 100000; i++) {
        std::string other = "other" + std::to_string(i);

        t.remember(limit_of(other, 5), 3000 * kSecond, ++now);

        /* some of them twice */
        if (i % 4 == 0) {
            assert_true(t.knows(limit_of(other, 5), ++now));
        }

        if (i % 100 == 0) {
            assert_true(t.ask(limit_of("client", 500), ++now, &state));
            counted += state.admits;
            assert_int_equal(state.used, counted);
            assert_true(t.knows(limit_of("refused", 5), ++now));
        }
    }

    assert_int_equal(counted, 500);
    assert_in_range(t.table.stats().evictions, 99000, 100000);
    assert_int_equal(t.table.stats().recoveries, 0);
}

void a_table_full_of_refusals_has_room_for_counts(void **)
{
    Table t;
    LimitState state;
    int64_t now = kSecond;

    for (int i = 0; i < 1000; i++) {
        LimitQuery limit = limit_of("refused", i + 1);

        t.remember(limit, 3000 * kSecond, ++now);
        assert_true(t.knows(limit, ++now));
    }

    for (int i = 1; i <= 1000; i++) {
        assert_true(t.ask(limit_of("client", 1000), ++now, &state));
        assert_int_equal(state.used, i);
    }
}

void where_counts_take_all_memory_something_is_given_up_as_a_whole(void **)
{
    Table t;
    LimitQuery greedy = limit_of("greedy", 1000000);
    LimitQuery refused = limit_of("client", 5);
    LimitState state;
    int64_t now = kSecond;
    int64_t counted = 0;

    while (t.ask(greedy, ++now, &state)) {
        counted++;
    }

    t.remember(refused, 10 * kSecond, ++now);

    /* the refusal, or the counts */
    bool is_known = t.knows(refused, ++now);

    greedy.cost = 0;
    assert_true(t.ask(greedy, ++now, &state));
    assert_int_equal(state.used, is_known ? 0 : counted);
    assert_int_equal(t.table.stats().evictions, is_known);
    assert_true(t.ask(limit_of("other", 5), ++now, &state));
    assert_true(state.admits);
}

void counts_of_the_same_key_are_not_disturbed(void **)
{
    for (unsigned buckets : {0, 6}) {
        for (bool counts_refused : {false, true}) {
            Table plain;
            Table t;
            LimitQuery limit = limit_of("client", 5, buckets);
            LimitState expected;
            LimitState state;
            int64_t expected_time;
            int64_t time;

            limit.counts_refused = counts_refused;

            int64_t now = 0;

            /* an hour's window, a request in ten minutes or less */
            for (int64_t i = 1; i <= 200; i++) {
                now += (1 + i % 10) * 60 * kSecond;

                t.remember(limit, 60 * kSecond, now - 3, 1000);
                assert_true(t.knows(limit, now - 2));

                if (i % 3 == 0) {
                    t.table.forget(limit);
                }

                assert_true(plain.ask(limit, now, &expected, &expected_time));
                assert_true(t.ask(limit, now, &state, &time));

                assert_int_equal(time, expected_time);
                assert_int_equal(state.admits, expected.admits);
                assert_int_equal(state.is_counted, expected.is_counted);
                assert_int_equal(state.used, expected.used);
                assert_int_equal(state.wait_us, expected.wait_us);

                if (i % 7 == 0 && state.is_counted) {
                    plain.take_back(limit, expected, expected_time);
                    t.take_back(limit, state, time);
                }
            }
        }
    }
}

void counting_does_not_disturb_what_is_remembered(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);
    LimitState state;
    int64_t time;

    t.remember(limit, 1000 * kSecond, kSecond);

    for (int64_t i = 2; i < 100; i++) {
        assert_true(t.ask(limit, i * kSecond, &state, &time));
        assert_int_equal(t.wait(limit, i * kSecond), (1001 - i) * kSecond);

        if (i % 2) {
            t.take_back(limit, state, time);
        }
    }
}

/* A store that counts elsewhere refused for so long, as operators ruled. */
void remember_ruled(Table *t, const LimitQuery &limit, int64_t wait,
                    int64_t ruled_max, bool is_banned)
{
    t->table.remember(
        limit,
        LimitState{false, false, 5, wait, sl::kNoPlace, ruled_max, is_banned},
        kSecond, kSecond);
}

void what_was_ruled_is_known_with_the_refusal(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);
    LimitState state;

    for (int64_t max : {int64_t{0}, int64_t{1}, int64_t{500}}) {
        for (bool is_banned : {false, true}) {
            remember_ruled(&t, limit, kSecond, max, is_banned);
            assert_true(t.table.recall(limit, kSecond, sl::kAnyAge, &state)
                        == Recalled::kRefusal);
            assert_int_equal(state.ruled_max, max);
            assert_int_equal(state.is_banned, is_banned);
            assert_false(state.admits);
            assert_false(state.is_counted);
        }
    }
}

void what_operators_rule_may_last_longer_than_the_window(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);
    int64_t longest = sl::kLongestRuling + limit.window_us;
    int64_t forever = 2 * longest;

    remember_ruled(&t, limit, 10 * limit.window_us, sl::kOwnMax, true);
    assert_int_equal(t.wait(limit, kSecond), 10 * limit.window_us);

    remember_ruled(&t, limit, 10 * limit.window_us, 3, false);
    assert_int_equal(t.wait(limit, kSecond), 10 * limit.window_us);

    remember_ruled(&t, limit, forever, sl::kOwnMax, true);
    assert_int_equal(t.wait(limit, kSecond), longest);

    remember_ruled(&t, limit, forever, 3, false);
    assert_int_equal(t.wait(limit, kSecond), longest);

    remember_ruled(&t, limit, forever, sl::kOwnMax, false);
    assert_int_equal(t.wait(limit, kSecond), limit.window_us);
}

void what_was_asked_before_a_change_is_void(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);
    LimitState state;
    int64_t asked = 10 * kSecond;
    int64_t now = asked + 100;

    /* it was asked before the answer came */
    t.table.remember(limit, LimitState{false, false, 5, kSecond}, asked, now);

    auto is_known = [&](int64_t void_until) {
        return t.table.recall(limit, now, sl::kAnyAge, &state, void_until)
               == Recalled::kRefusal;
    };

    assert_true(is_known(0));
    assert_true(is_known(asked - 1));
    assert_false(is_known(asked));
    assert_false(is_known(asked + 1));
    assert_false(is_known(now));

    /* what is void for one is not gone, and a later refusal holds */
    assert_true(is_known(0));
    t.table.remember(limit, LimitState{false, false, 5, kSecond}, now, now);
    assert_true(is_known(asked));
}

/* The table's time goes on where the clock steps back; changes are measured by
 * the clock. */
void a_change_is_measured_by_the_clock_that_callers_bring(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);
    LimitState state;

    t.remember(limit_of("another", 5), 900, 1000 * kSecond);
    t.remember(limit, 900, kSecond);

    assert_true(t.table.recall(limit, kSecond, sl::kAnyAge, &state, kSecond - 1)
                == Recalled::kRefusal);
    assert_true(t.table.recall(limit, kSecond, sl::kAnyAge, &state, kSecond)
                == Recalled::kNothing);
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_known_at_first),
        cmocka_unit_test(a_refusal_is_known_until_the_moment_that_was_named),
        cmocka_unit_test(what_is_used_is_what_was_used_then),
        cmocka_unit_test(a_refusal_is_known_of_the_very_same_request_only),
        cmocka_unit_test(two_stores_may_refuse_the_same_request),
        cmocka_unit_test(zones_may_have_the_longest_names),
        cmocka_unit_test(refusals_of_several_requests_are_known_each),
        cmocka_unit_test(
            a_wait_is_counted_from_the_question_not_from_the_answer),
        cmocka_unit_test(a_clock_may_run_faster_by_a_thousandth),
        cmocka_unit_test(after_a_while_one_has_to_ask_again),
        cmocka_unit_test(to_ask_again_makes_it_no_younger),
        cmocka_unit_test(where_no_age_is_young_enough_everybody_asks),
        cmocka_unit_test(any_age_is_young_enough_if_one_says_so),
        cmocka_unit_test(no_wait_is_longer_than_the_window),
        cmocka_unit_test(if_the_clock_steps_back_a_refusal_lasts_no_longer),
        cmocka_unit_test(
            if_the_clock_steps_back_before_the_answer_nothing_is_remembered),
        cmocka_unit_test(what_is_remembered_last_is_what_counts),
        cmocka_unit_test(what_is_over_is_not_remembered),
        cmocka_unit_test(what_is_forgotten_is_not_known_any_more),
        cmocka_unit_test(a_refusal_takes_two_cells_and_gives_them_back),
        cmocka_unit_test(refusals_that_are_over_never_fill_the_table),
        cmocka_unit_test(
            a_flood_of_refusals_spares_who_keeps_being_asked_about),
        cmocka_unit_test(a_table_full_of_refusals_has_room_for_counts),
        cmocka_unit_test(
            where_counts_take_all_memory_something_is_given_up_as_a_whole),
        cmocka_unit_test(counts_of_the_same_key_are_not_disturbed),
        cmocka_unit_test(counting_does_not_disturb_what_is_remembered),
        cmocka_unit_test(what_was_ruled_is_known_with_the_refusal),
        cmocka_unit_test(what_operators_rule_may_last_longer_than_the_window),
        cmocka_unit_test(what_was_asked_before_a_change_is_void),
        cmocka_unit_test(a_change_is_measured_by_the_clock_that_callers_bring),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
