/* What is decided from a store's answer, and what a client is shown. */

#include "request/pure/sl_verdict.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "unit.h"

namespace {

using sl::kNoWait;
using sl::kUnknownUse;
using sl::LimitState;
using sl::Verdict;
using Verdicts = std::vector<Verdict>;

/* A limit that is used this much of 10, and has room. */
Verdict admitting(int64_t used, int64_t wait_us = 1, int64_t max = 10)
{
    return {max, false, true, {true, true, used, wait_us}};
}

/* A limit that is all used up, and for how long. */
Verdict refusing(int64_t wait_us, int64_t max = 10)
{
    return {max, false, true, {false, false, max, wait_us}};
}

Verdict in_dry_run(Verdict v)
{
    v.dry_run = true;
    return v;
}

/* A limit that would have room for a client that is banned. */
Verdict banning(int64_t wait_us, int64_t used = 1, int64_t max = 10)
{
    Verdict v{max, false, true, {false, false, used, wait_us}};

    v.state.is_banned = true;

    return v;
}

/* The same limit, had there been no answer. */
Verdict unanswered(Verdict v)
{
    v.known = false;
    return v;
}

/* --- is_refusal, is_dry_refusal --- */

void a_limit_with_room_refuses_nobody(void **)
{
    for (const Verdict &v : {admitting(1), in_dry_run(admitting(1))}) {
        assert_false(sl::is_refusal(v));
        assert_false(sl::is_dry_refusal(v));
    }
}

void a_limit_without_room_refuses(void **)
{
    assert_true(sl::is_refusal(refusing(1)));
    assert_true(sl::is_refusal(refusing(kNoWait)));
    assert_false(sl::is_dry_refusal(refusing(1)));
}

void a_ban_refuses_as_a_limit_without_room_does(void **)
{
    assert_true(sl::is_refusal(banning(1)));
    assert_false(sl::is_dry_refusal(banning(1)));
    assert_true(sl::is_dry_refusal(in_dry_run(banning(1))));
    assert_false(sl::is_refusal(in_dry_run(banning(1))));
    assert_false(sl::is_refusal(unanswered(banning(1))));
}

void in_a_dry_run_a_limit_without_room_only_would(void **)
{
    assert_false(sl::is_refusal(in_dry_run(refusing(1))));
    assert_true(sl::is_dry_refusal(in_dry_run(refusing(1))));
    assert_true(sl::is_dry_refusal(in_dry_run(refusing(kNoWait))));
}

void a_limit_without_an_answer_refuses_nobody(void **)
{
    for (const Verdict &v : {refusing(1), in_dry_run(refusing(1))}) {
        assert_false(sl::is_refusal(unanswered(v)));
        assert_false(sl::is_dry_refusal(unanswered(v)));
    }
}

/* --- outweighs --- */

void assert_outweighs(const Verdict &more, const Verdict &less)
{
    assert_true(sl::outweighs(more, less));
    assert_false(sl::outweighs(less, more));
}

void assert_equal_weight(const Verdict &a, const Verdict &b)
{
    assert_false(sl::outweighs(a, b));
    assert_false(sl::outweighs(b, a));
}

void what_refuses_outweighs_all_else(void **)
{
    assert_outweighs(refusing(1), in_dry_run(refusing(1000)));
    assert_outweighs(refusing(1), in_dry_run(refusing(kNoWait)));
    assert_outweighs(refusing(1), admitting(9, 1000));
    assert_outweighs(refusing(1), admitting(99, 1000));
    assert_outweighs(refusing(1), unanswered(refusing(1000)));
}

void what_would_refuse_but_for_a_dry_run_comes_next(void **)
{
    assert_outweighs(in_dry_run(refusing(1)), admitting(10, 1000));
    assert_outweighs(in_dry_run(refusing(1)), in_dry_run(admitting(10, 1000)));
    assert_outweighs(in_dry_run(refusing(1)), unanswered(refusing(1000)));
}

void what_admits_outweighs_what_is_not_known(void **)
{
    assert_outweighs(admitting(0, kNoWait), unanswered(admitting(9)));
    assert_outweighs(admitting(0, kNoWait), unanswered(refusing(1000)));
    assert_outweighs(in_dry_run(admitting(0)), unanswered(refusing(1000)));
}

void the_longest_wait_outweighs_if_refused(void **)
{
    assert_outweighs(refusing(6), refusing(5));
    assert_outweighs(refusing(INT64_MAX), refusing(1));
    assert_outweighs(in_dry_run(refusing(6)), in_dry_run(refusing(5)));
}

void no_end_of_the_wait_is_the_longest_one(void **)
{
    assert_outweighs(refusing(kNoWait), refusing(1));
    assert_outweighs(refusing(kNoWait), refusing(INT64_MAX));
    assert_outweighs(in_dry_run(refusing(kNoWait)), in_dry_run(refusing(1)));
    assert_equal_weight(refusing(kNoWait), refusing(kNoWait));
}

void of_a_ban_and_a_full_limit_the_longer_wait_is_shown(void **)
{
    assert_outweighs(banning(6), refusing(5));
    assert_outweighs(refusing(6), banning(5));
    assert_outweighs(refusing(kNoWait), banning(5));
    assert_equal_weight(refusing(5), banning(5));
    assert_outweighs(banning(1), in_dry_run(refusing(5)));
    assert_outweighs(refusing(1), in_dry_run(banning(5)));
}

void what_remains_means_nothing_if_refused(void **)
{
    assert_outweighs(refusing(6, 1000), refusing(5, 1));
    assert_outweighs(refusing(6, 1), refusing(5, 1000));
    assert_equal_weight(refusing(5, 1), refusing(5, 1000));
}

void the_least_remaining_outweighs_if_admitted(void **)
{
    assert_outweighs(admitting(4), admitting(3));
    assert_outweighs(admitting(10), admitting(9));
    assert_outweighs(admitting(1, 1, 5), admitting(90, 1, 100));
}

void the_wait_means_nothing_if_admitted(void **)
{
    assert_outweighs(admitting(5, 1), admitting(4, 1000));
    assert_outweighs(admitting(5, 1), admitting(4, kNoWait));
    assert_equal_weight(admitting(5, 1), admitting(5, 1000));
}

void a_dry_run_means_nothing_if_admitted(void **)
{
    assert_outweighs(in_dry_run(admitting(5)), admitting(4));
    assert_outweighs(admitting(5), in_dry_run(admitting(4)));
    assert_equal_weight(in_dry_run(admitting(5)), admitting(5));
}

void using_more_than_a_lowered_maximum_is_just_nothing_left(void **)
{
    assert_equal_weight(admitting(10), admitting(99));
    assert_outweighs(admitting(99), admitting(9));
}

void unanswered_limits_weigh_the_same_whatever_they_hold(void **)
{
    Verdicts all = {unanswered(refusing(1)), unanswered(refusing(kNoWait)),
                    unanswered(in_dry_run(refusing(1))),
                    unanswered(admitting(1)), unanswered(admitting(9, 5, 9))};

    for (const Verdict &a : all) {
        for (const Verdict &b : all) {
            assert_equal_weight(a, b);
        }
    }
}

/* Known or not, admitting or not, dry or not, with 3 uses, maxima and waits. */
Verdicts every_kind_of_verdict()
{
    Verdicts all;

    for (int n = 0; n < 8 * 27; n++) {
        int rest = n / 8;

        all.push_back({1 + 2 * (rest % 3),
                       (n & 1) != 0,
                       (n & 2) != 0,
                       {(n & 4) != 0, false, rest / 3 % 3, rest / 9}});
    }

    return all;
}

/* The definition, as it stands beside outweighs(): the larger is shown. */
std::pair<int, int64_t> rank(const Verdict &v)
{
    if (!v.known) {
        return {0, 0};
    }

    if (v.state.admits) {
        return {1, -std::max<int64_t>(v.max - v.state.used, 0)};
    }

    return {v.dry_run ? 2 : 3,
            v.state.wait_us == kNoWait ? INT64_MAX : v.state.wait_us};
}

void all_pairs_follow_the_definition(void **)
{
    Verdicts all = every_kind_of_verdict();

    for (const Verdict &a : all) {
        for (const Verdict &b : all) {
            assert_int_equal(sl::outweighs(a, b), rank(a) > rank(b));
        }
    }
}

/* The one that headers and variables show. */
size_t shown(const Verdicts &all)
{
    size_t best = 0;

    for (size_t i = 1; i < all.size(); i++) {
        best = sl::outweighs(all[i], all[best]) ? i : best;
    }

    return best;
}

void of_equals_the_first_is_shown(void **)
{
    assert_int_equal(shown({admitting(5), admitting(5), admitting(5)}), 0);
    assert_int_equal(shown({admitting(1), admitting(6), admitting(6)}), 1);
    assert_int_equal(shown({refusing(5), refusing(5), refusing(5)}), 0);
    assert_int_equal(shown({refusing(1), refusing(6), refusing(6)}), 1);
    assert_int_equal(shown({unanswered(refusing(1)), unanswered(admitting(1))}),
                     0);
}

void among_mixed_limits_the_longest_refusal_is_shown(void **)
{
    assert_int_equal(shown({admitting(1, 1000), refusing(5), admitting(9, 900),
                            refusing(6), in_dry_run(refusing(7))}),
                     3);
    assert_int_equal(shown({refusing(6), admitting(9, 1000), refusing(5)}), 0);
    assert_int_equal(
        shown({admitting(0), refusing(5), admitting(0), refusing(5)}), 1);
}

void one_refusal_is_found_wherever_it_stands(void **)
{
    for (size_t at = 0; at < sl::kMaxLimits; at++) {
        Verdicts all(sl::kMaxLimits, admitting(10, 1000));
        all[at] = refusing(1);

        assert_int_equal(shown(all), at);
    }
}

void one_answer_is_found_wherever_it_stands(void **)
{
    for (size_t at = 0; at < sl::kMaxLimits; at++) {
        Verdicts all(sl::kMaxLimits, unanswered(refusing(1000)));
        all[at] = admitting(0);

        assert_int_equal(shown(all), at);
    }
}

/* --- is_near_limit --- */

void the_last_fifth_is_near_the_limit(void **)
{
    assert_false(sl::is_near_limit(admitting(7)));
    assert_true(sl::is_near_limit(admitting(8)));
    assert_true(sl::is_near_limit(admitting(10)));
    assert_true(sl::is_near_limit(refusing(1)));

    /* a fifth of a few requests is rounded down */
    assert_false(sl::is_near_limit(admitting(3, 1, 4)));
    assert_true(sl::is_near_limit(admitting(4, 1, 4)));
    assert_true(sl::is_near_limit(admitting(24, 1, 30)));
}

void the_largest_maximum_does_not_overflow(void **)
{
    assert_false(sl::is_near_limit(admitting(INT64_MAX / 2, 1, INT64_MAX)));
    assert_true(sl::is_near_limit(admitting(INT64_MAX, 1, INT64_MAX)));
}

void without_an_answer_nobody_is_near_a_limit(void **)
{
    assert_false(sl::is_near_limit(unanswered(admitting(10))));
}

/* --- remaining --- */

int64_t remaining(int64_t max, int64_t used)
{
    int64_t admitted = sl::remaining({max, false, true, {true, true, used, 1}});

    /* whether it refuses or is a dry run makes no difference */
    assert_int_equal(sl::remaining({max, false, true, {false, false, used, 0}}),
                     admitted);
    assert_int_equal(sl::remaining({max, true, true, {false, false, used, 1}}),
                     admitted);

    return admitted;
}

void what_is_not_used_remains(void **)
{
    assert_int_equal(remaining(10, 0), 10);
    assert_int_equal(remaining(10, 3), 7);
    assert_int_equal(remaining(10, 9), 1);
    assert_int_equal(remaining(INT64_MAX, 0), INT64_MAX);
}

void nothing_remains_at_and_beyond_the_maximum(void **)
{
    assert_int_equal(remaining(10, 10), 0);
    assert_int_equal(remaining(10, 11), 0);
    assert_int_equal(remaining(0, 0), 0);
    assert_int_equal(remaining(0, 5), 0);
    assert_int_equal(remaining(1, INT64_MAX), 0);
    assert_int_equal(remaining(INT64_MAX, INT64_MAX), 0);
}

void to_a_banned_client_nothing_remains(void **)
{
    assert_int_equal(sl::remaining(banning(1, 0)), 0);
    assert_int_equal(sl::remaining(banning(1, 3)), 0);
    assert_int_equal(sl::remaining(banning(kNoWait, kUnknownUse)), 0);
    assert_int_equal(sl::remaining(in_dry_run(banning(1, 3))), 0);
    assert_int_equal(sl::remaining(unanswered(banning(1, 3))), -1);
}

void without_an_answer_it_is_not_known_what_remains(void **)
{
    assert_int_equal(sl::remaining(unanswered(admitting(3))), -1);
    assert_int_equal(sl::remaining(unanswered(refusing(3))), -1);
    assert_int_equal(sl::remaining(unanswered(refusing(3, 0))), -1);
}

void if_nobody_was_asked_it_is_not_known_what_remains(void **)
{
    assert_int_equal(remaining(1, kUnknownUse), -1);
    assert_int_equal(remaining(INT64_MAX, kUnknownUse), -1);
}

void of_nothing_nothing_remains_without_asking(void **)
{
    assert_int_equal(remaining(0, kUnknownUse), 0);
}

/* --- seconds_to_wait --- */

void a_wait_is_at_least_one_second(void **)
{
    assert_int_equal(sl::seconds_to_wait(0), 1);
    assert_int_equal(sl::seconds_to_wait(1), 1);
    assert_int_equal(sl::seconds_to_wait(999999), 1);
    assert_int_equal(sl::seconds_to_wait(1000000), 1);
}

void a_second_that_has_begun_counts_whole(void **)
{
    assert_int_equal(sl::seconds_to_wait(1000001), 2);
    assert_int_equal(sl::seconds_to_wait(1999999), 2);
    assert_int_equal(sl::seconds_to_wait(2000000), 2);
    assert_int_equal(sl::seconds_to_wait(2000001), 3);
    assert_int_equal(sl::seconds_to_wait(60000000), 60);
    assert_int_equal(sl::seconds_to_wait(60000001), 61);
}

void the_extremes_of_a_wait_do_not_overflow(void **)
{
    assert_int_equal(sl::seconds_to_wait(INT64_MAX), 9223372036855);
    assert_int_equal(sl::seconds_to_wait(-1), 1);
    assert_int_equal(sl::seconds_to_wait(INT64_MIN), 1);
}

/* --- uncounted --- */

void what_is_uncounted_is_not_used(void **)
{
    LimitState state = sl::uncounted({true, true, 7, 5}, 3);

    assert_true(state.admits);
    assert_false(state.is_counted);
    assert_int_equal(state.used, 4);
    assert_int_equal(state.wait_us, 5);
}

void where_nothing_else_was_counted_there_is_nothing_to_wait_for(void **)
{
    LimitState state = sl::uncounted({true, true, 3, 5}, 3);

    assert_int_equal(state.used, 0);
    assert_int_equal(state.wait_us, kNoWait);
}

/* More than max would remain then. */
void never_less_than_nothing_is_used(void **)
{
    LimitState state = sl::uncounted({true, true, 2, 5}, 3);

    assert_int_equal(state.used, 0);
    assert_int_equal(state.wait_us, kNoWait);
    assert_int_equal(sl::remaining({10, false, true, state}), 10);
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_with_room_refuses_nobody),
        cmocka_unit_test(a_limit_without_room_refuses),
        cmocka_unit_test(a_ban_refuses_as_a_limit_without_room_does),
        cmocka_unit_test(in_a_dry_run_a_limit_without_room_only_would),
        cmocka_unit_test(a_limit_without_an_answer_refuses_nobody),
        cmocka_unit_test(what_refuses_outweighs_all_else),
        cmocka_unit_test(what_would_refuse_but_for_a_dry_run_comes_next),
        cmocka_unit_test(what_admits_outweighs_what_is_not_known),
        cmocka_unit_test(the_longest_wait_outweighs_if_refused),
        cmocka_unit_test(no_end_of_the_wait_is_the_longest_one),
        cmocka_unit_test(of_a_ban_and_a_full_limit_the_longer_wait_is_shown),
        cmocka_unit_test(what_remains_means_nothing_if_refused),
        cmocka_unit_test(the_least_remaining_outweighs_if_admitted),
        cmocka_unit_test(the_wait_means_nothing_if_admitted),
        cmocka_unit_test(a_dry_run_means_nothing_if_admitted),
        cmocka_unit_test(
            using_more_than_a_lowered_maximum_is_just_nothing_left),
        cmocka_unit_test(unanswered_limits_weigh_the_same_whatever_they_hold),
        cmocka_unit_test(all_pairs_follow_the_definition),
        cmocka_unit_test(of_equals_the_first_is_shown),
        cmocka_unit_test(among_mixed_limits_the_longest_refusal_is_shown),
        cmocka_unit_test(one_refusal_is_found_wherever_it_stands),
        cmocka_unit_test(one_answer_is_found_wherever_it_stands),
        cmocka_unit_test(the_last_fifth_is_near_the_limit),
        cmocka_unit_test(the_largest_maximum_does_not_overflow),
        cmocka_unit_test(without_an_answer_nobody_is_near_a_limit),
        cmocka_unit_test(what_is_not_used_remains),
        cmocka_unit_test(nothing_remains_at_and_beyond_the_maximum),
        cmocka_unit_test(to_a_banned_client_nothing_remains),
        cmocka_unit_test(without_an_answer_it_is_not_known_what_remains),
        cmocka_unit_test(if_nobody_was_asked_it_is_not_known_what_remains),
        cmocka_unit_test(of_nothing_nothing_remains_without_asking),
        cmocka_unit_test(a_wait_is_at_least_one_second),
        cmocka_unit_test(a_second_that_has_begun_counts_whole),
        cmocka_unit_test(the_extremes_of_a_wait_do_not_overflow),
        cmocka_unit_test(what_is_uncounted_is_not_used),
        cmocka_unit_test(
            where_nothing_else_was_counted_there_is_nothing_to_wait_for),
        cmocka_unit_test(never_less_than_nothing_is_used),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
