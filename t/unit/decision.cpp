/* A store's numbers, what is decided from them, and what a client is shown. */

#include "sl_decision.h"

#include <algorithm>
#include <vector>

#include "unit.h"

namespace {

using sl::LimitState;
using Numbers = std::vector<int64_t>;

/* A limit that is all used up, and for how long. */
LimitState refusing(int64_t wait_us)
{
    return {false, 10, wait_us};
}

/* A limit that is used this much, and has room. */
LimitState admitting(int64_t used, int64_t wait_us = 1)
{
    return {true, used, wait_us};
}

/* --- read_states --- */

/* Memory of just the sizes given, so that use of more is noticed. */
bool is_read(const Numbers &numbers, size_t limits)
{
    Numbers exact(numbers);
    std::vector<LimitState> states(limits);

    exact.shrink_to_fit();

    return sl::read_states(exact.data(), exact.size(), states.data(), limits);
}

void three_numbers_become_one_state(void **)
{
    LimitState state{};
    int64_t numbers[] = {1, 5, 2000000};

    assert_true(sl::read_states(numbers, 3, &state, 1));
    assert_true(state.admits);
    assert_int_equal(state.used, 5);
    assert_int_equal(state.wait_us, 2000000);
}

void zero_in_the_first_place_is_a_refusal(void **)
{
    LimitState state{true, -1, -1};
    int64_t numbers[] = {0, 7, 9};

    assert_true(sl::read_states(numbers, 3, &state, 1));
    assert_false(state.admits);
    assert_int_equal(state.used, 7);
    assert_int_equal(state.wait_us, 9);
}

void states_are_read_limit_by_limit_and_no_further(void **)
{
    LimitState states[4] = {{}, {}, {}, {true, -7, -8}};
    int64_t numbers[] = {1, 2, 3, 0, 5, 6, 1, 8, 9};

    assert_true(sl::read_states(numbers, 9, states, 3));

    for (int i = 0; i < 3; i++) {
        assert_int_equal(states[i].admits, i != 1);
        assert_int_equal(states[i].used, 3 * i + 2);
        assert_int_equal(states[i].wait_us, 3 * i + 3);
    }

    assert_int_equal(states[3].used, -7);
    assert_int_equal(states[3].wait_us, -8);
}

void up_to_16_limits_are_read(void **)
{
    for (size_t limits = 1; limits <= sl::kMaxLimits; limits++) {
        assert_true(is_read(Numbers(3 * limits, 1), limits));
    }

    assert_int_equal(sl::kMaxLimits, 16);
    assert_false(is_read(Numbers(3 * 17, 1), 17));
}

void no_limits_are_no_answer(void **)
{
    assert_false(is_read({}, 0));
    assert_false(is_read({1, 1, 1}, 0));
}

void only_three_numbers_per_limit_are_an_answer(void **)
{
    for (size_t limits : {1, 2, 5, 16}) {
        for (size_t count = 0; count <= 3 * limits + 4; count++) {
            assert_int_equal(is_read(Numbers(count, 1), limits),
                             count == 3 * limits);
        }
    }
}

void a_number_of_limits_that_overflows_is_refused(void **)
{
    LimitState states[2] = {};
    int64_t numbers[] = {1, 1, 1, 1, 1};
    size_t limits = SIZE_MAX / 3 + 2;

    assert_int_equal(limits * sl::kNumbersPerLimit, 5);
    assert_false(sl::read_states(numbers, 5, states, limits));
}

void admits_is_zero_or_one_and_nothing_else(void **)
{
    assert_true(is_read({0, 1, 1}, 1));
    assert_true(is_read({1, 1, 1}, 1));

    for (int64_t admits : {int64_t{2}, int64_t{-1}, int64_t{1} << 32,
                           (int64_t{1} << 32) + 1, INT64_MAX, INT64_MIN})
    {
        assert_false(is_read({admits, 1, 1}, 1));
    }
}

void used_and_wait_are_never_negative(void **)
{
    for (size_t place : {1, 2}) {
        for (int64_t number : {int64_t{-1}, int64_t{0}, INT64_MAX, INT64_MIN}) {
            Numbers numbers = {1, 1, 1};
            numbers[place] = number;

            assert_int_equal(is_read(numbers, 1), number >= 0);

            numbers[0] = 0;
            assert_int_equal(is_read(numbers, 1), number >= 0);
        }
    }
}

void one_wrong_number_anywhere_spoils_the_answer(void **)
{
    for (size_t wrong = 0; wrong < 3 * sl::kMaxLimits; wrong++) {
        Numbers numbers(3 * sl::kMaxLimits, 1);
        numbers[wrong] = -1;

        assert_false(is_read(numbers, sl::kMaxLimits));
    }
}

/* --- decide --- */

void assert_decision(const std::vector<LimitState> &states,
                     const std::vector<int64_t> &maxima, bool admitted,
                     size_t shown)
{
    sl::Decision d = sl::decide(states.data(), maxima.data(), states.size());

    assert_int_equal(d.admitted, admitted);
    assert_int_equal(d.shown, shown);
}

void assert_admitted(const std::vector<LimitState> &states,
                     const std::vector<int64_t> &maxima, size_t shown)
{
    assert_decision(states, maxima, true, shown);
}

void assert_refused(const std::vector<LimitState> &states, size_t shown)
{
    std::vector<int64_t> maxima(states.size(), 10);

    assert_decision(states, maxima, false, shown);
}

void a_single_limit_decides_alone(void **)
{
    assert_admitted({admitting(1)}, {10}, 0);
    assert_admitted({admitting(0, 0)}, {1}, 0);
    assert_refused({refusing(1)}, 0);
    assert_refused({refusing(0)}, 0);
}

void the_least_remaining_is_shown_if_admitted(void **)
{
    assert_admitted({admitting(3), admitting(4)}, {10, 10}, 1);
    assert_admitted({admitting(4), admitting(3)}, {10, 10}, 0);
    assert_admitted({admitting(1), admitting(9), admitting(5)}, {10, 10, 10},
                    1);
    assert_admitted({admitting(1), admitting(5), admitting(9)}, {10, 10, 10},
                    2);
}

void what_remains_counts_not_what_is_used(void **)
{
    assert_admitted({admitting(90), admitting(1)}, {100, 5}, 1);
    assert_admitted({admitting(1), admitting(90)}, {5, 100}, 0);
}

void the_wait_means_nothing_if_admitted(void **)
{
    assert_admitted({admitting(5, 1), admitting(4, 1000)}, {10, 10}, 0);
    assert_admitted({admitting(5, 1), admitting(5, 1000)}, {10, 10}, 0);
    assert_admitted({admitting(4, 1000), admitting(5, 1)}, {10, 10}, 1);
}

void the_first_of_equals_is_shown_if_admitted(void **)
{
    assert_admitted({admitting(5), admitting(5), admitting(5)}, {10, 10, 10},
                    0);
    assert_admitted({admitting(5), admitting(95)}, {10, 100}, 0);
    assert_admitted({admitting(1), admitting(6), admitting(6)}, {10, 10, 10},
                    1);
}

void using_more_than_a_lowered_maximum_is_just_nothing_left(void **)
{
    assert_admitted({admitting(10), admitting(99)}, {10, 10}, 0);
    assert_admitted({admitting(99), admitting(10)}, {10, 10}, 0);
    assert_admitted({admitting(9), admitting(99)}, {10, 10}, 1);
}

void the_longest_wait_is_shown_if_refused(void **)
{
    assert_refused({refusing(5), refusing(6)}, 1);
    assert_refused({refusing(6), refusing(5)}, 0);
    assert_refused({refusing(1), refusing(9), refusing(5)}, 1);
    assert_refused({refusing(1), refusing(5), refusing(9)}, 2);
    assert_refused({refusing(0), refusing(INT64_MAX)}, 1);
}

void the_first_of_equals_is_shown_if_refused(void **)
{
    assert_refused({refusing(5), refusing(5), refusing(5)}, 0);
    assert_refused({refusing(1), refusing(6), refusing(6)}, 1);
}

void what_remains_means_nothing_if_refused(void **)
{
    assert_decision({refusing(6), refusing(5)}, {1000, 10}, false, 0);
    assert_decision({refusing(5), refusing(6)}, {10, 1000}, false, 1);
}

void a_refusing_limit_outweighs_an_admitting_one(void **)
{
    assert_refused({refusing(1), admitting(9, 1000)}, 0);
    assert_refused({admitting(9, 1000), refusing(1)}, 1);
    assert_refused({admitting(9, 1000), refusing(0)}, 1);
    assert_refused({admitting(99, 1000), refusing(1)}, 1);
}

void among_mixed_limits_the_longest_refusal_is_shown(void **)
{
    assert_refused(
        {admitting(1, 1000), refusing(5), admitting(9, 900), refusing(6)}, 3);
    assert_refused({refusing(6), admitting(9, 1000), refusing(5)}, 0);
    assert_refused({admitting(0), refusing(5), admitting(0), refusing(5)}, 1);
}

void one_refusal_is_found_wherever_it_stands(void **)
{
    for (size_t at = 0; at < sl::kMaxLimits; at++) {
        std::vector<LimitState> states(sl::kMaxLimits, admitting(10, 1000));
        states[at] = refusing(1);

        assert_refused(states, at);
    }
}

/* The definition, as it stands beside sl::Decision. */
size_t limit_to_show(const LimitState *states, const int64_t *maxima,
                     bool admitted)
{
    int64_t weights[3];

    for (int i = 0; i < 3; i++) {
        weights[i] = admitted ? -sl::remaining(maxima[i], states[i].used)
                     : states[i].admits ? -1
                                        : states[i].wait_us;
    }

    return static_cast<size_t>(std::max_element(weights, weights + 3)
                               - weights);
}

void all_combinations_of_three_limits_follow_the_definition(void **)
{
    /* admitting or not; 2 used of 1, 3 or 5; a wait of 0, 1 or 2 */
    constexpr int kWays = 2 * 3 * 3;

    for (int n = 0; n < kWays * kWays * kWays; n++) {
        LimitState states[3];
        int64_t maxima[3];
        int rest = n;

        for (int i = 0; i < 3; i++, rest /= kWays) {
            states[i] = LimitState{rest % 2 == 1, 2, rest / 6 % 3};
            maxima[i] = 1 + 2 * (rest / 2 % 3);
        }

        bool admitted =
            states[0].admits && states[1].admits && states[2].admits;
        sl::Decision d = sl::decide(states, maxima, 3);

        assert_int_equal(d.admitted, admitted);
        assert_int_equal(d.shown, limit_to_show(states, maxima, admitted));
    }
}

/* --- remaining --- */

void what_is_not_used_remains(void **)
{
    assert_int_equal(sl::remaining(10, 0), 10);
    assert_int_equal(sl::remaining(10, 3), 7);
    assert_int_equal(sl::remaining(10, 9), 1);
    assert_int_equal(sl::remaining(INT64_MAX, 0), INT64_MAX);
}

void nothing_remains_at_and_beyond_the_maximum(void **)
{
    assert_int_equal(sl::remaining(10, 10), 0);
    assert_int_equal(sl::remaining(10, 11), 0);
    assert_int_equal(sl::remaining(0, 0), 0);
    assert_int_equal(sl::remaining(1, INT64_MAX), 0);
    assert_int_equal(sl::remaining(INT64_MAX, INT64_MAX), 0);
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

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(three_numbers_become_one_state),
        cmocka_unit_test(zero_in_the_first_place_is_a_refusal),
        cmocka_unit_test(states_are_read_limit_by_limit_and_no_further),
        cmocka_unit_test(up_to_16_limits_are_read),
        cmocka_unit_test(no_limits_are_no_answer),
        cmocka_unit_test(only_three_numbers_per_limit_are_an_answer),
        cmocka_unit_test(a_number_of_limits_that_overflows_is_refused),
        cmocka_unit_test(admits_is_zero_or_one_and_nothing_else),
        cmocka_unit_test(used_and_wait_are_never_negative),
        cmocka_unit_test(one_wrong_number_anywhere_spoils_the_answer),
        cmocka_unit_test(a_single_limit_decides_alone),
        cmocka_unit_test(the_least_remaining_is_shown_if_admitted),
        cmocka_unit_test(what_remains_counts_not_what_is_used),
        cmocka_unit_test(the_wait_means_nothing_if_admitted),
        cmocka_unit_test(the_first_of_equals_is_shown_if_admitted),
        cmocka_unit_test(
            using_more_than_a_lowered_maximum_is_just_nothing_left),
        cmocka_unit_test(the_longest_wait_is_shown_if_refused),
        cmocka_unit_test(the_first_of_equals_is_shown_if_refused),
        cmocka_unit_test(what_remains_means_nothing_if_refused),
        cmocka_unit_test(a_refusing_limit_outweighs_an_admitting_one),
        cmocka_unit_test(among_mixed_limits_the_longest_refusal_is_shown),
        cmocka_unit_test(one_refusal_is_found_wherever_it_stands),
        cmocka_unit_test(
            all_combinations_of_three_limits_follow_the_definition),
        cmocka_unit_test(what_is_not_used_remains),
        cmocka_unit_test(nothing_remains_at_and_beyond_the_maximum),
        cmocka_unit_test(a_wait_is_at_least_one_second),
        cmocka_unit_test(a_second_that_has_begun_counts_whole),
        cmocka_unit_test(the_extremes_of_a_wait_do_not_overflow),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
