/* A store's numbers, and what is no answer. */

#include "store/pure/sl_limit_state.h"

#include <vector>

#include "unit.h"

namespace {

using sl::LimitState;
using Numbers = std::vector<int64_t>;

/* Memory of just the sizes given, so that use of more is noticed. */
bool is_read(const Numbers &numbers, size_t limits)
{
    Numbers exact(numbers);
    std::vector<LimitState> states(limits);
    int64_t time_us;

    exact.shrink_to_fit();

    return sl::read_answer(exact.data(), exact.size(), limits, states.data(),
                           &time_us);
}

/* An answer about so many limits with nothing wrong in it. */
Numbers good_answer(size_t limits)
{
    return Numbers(sl::numbers_in_answer(limits), 1);
}

void three_numbers_and_the_time_become_one_state(void **)
{
    LimitState state{};
    int64_t time_us = -1;
    int64_t numbers[] = {2, 5, 2000000, 1700000000000000};

    assert_true(sl::read_answer(numbers, 4, 1, &state, &time_us));
    assert_true(state.admits);
    assert_true(state.is_counted);
    assert_int_equal(state.used, 5);
    assert_int_equal(state.wait_us, 2000000);
    assert_int_equal(time_us, 1700000000000000);
}

void zero_in_the_first_place_is_a_refusal(void **)
{
    LimitState state{true, true, -1, -1};
    int64_t time_us;
    int64_t numbers[] = {0, 7, 9, 1};

    assert_true(sl::read_answer(numbers, 4, 1, &state, &time_us));
    assert_false(state.admits);
    assert_false(state.is_counted);
    assert_int_equal(state.used, 7);
    assert_int_equal(state.wait_us, 9);
}

void one_in_the_first_place_admits_without_counting(void **)
{
    LimitState state{false, true, -1, -1};
    int64_t time_us;
    int64_t numbers[] = {1, 7, 9, 1};

    assert_true(sl::read_answer(numbers, 4, 1, &state, &time_us));
    assert_true(state.admits);
    assert_false(state.is_counted);
}

void states_are_read_limit_by_limit_and_no_further(void **)
{
    LimitState states[4] = {{}, {}, {}, {true, true, -7, -8}};
    int64_t time_us = -1;
    int64_t numbers[] = {0, 2, 3, 1, 5, 6, 2, 8, 9, 10};

    assert_true(sl::read_answer(numbers, 10, 3, states, &time_us));

    for (int i = 0; i < 3; i++) {
        assert_int_equal(states[i].admits, i != 0);
        assert_int_equal(states[i].is_counted, i == 2);
        assert_int_equal(states[i].used, 3 * i + 2);
        assert_int_equal(states[i].wait_us, 3 * i + 3);
    }

    assert_int_equal(time_us, 10);
    assert_int_equal(states[3].used, -7);
    assert_int_equal(states[3].wait_us, -8);
}

void up_to_32_limits_are_read(void **)
{
    for (size_t limits = 1; limits <= sl::kMaxLimitsInAnswer; limits++) {
        assert_true(is_read(good_answer(limits), limits));
    }

    assert_int_equal(sl::kMaxLimitsInAnswer, 32);
    assert_false(is_read(good_answer(33), 33));
}

void about_no_limits_there_is_only_the_time(void **)
{
    assert_false(is_read({}, 0));
    assert_true(is_read({1}, 0));
    assert_false(is_read({1, 1, 1, 1}, 0));
}

void only_three_numbers_per_limit_and_the_time_are_an_answer(void **)
{
    for (size_t limits : {1, 2, 5, 16}) {
        for (size_t count = 0; count <= 4 * limits + 5; count++) {
            assert_int_equal(is_read(Numbers(count, 1), limits),
                             count == 3 * limits + 1
                                 || count == 4 * limits + 1);
        }
    }
}

void after_the_time_there_may_be_another_max_for_each_limit(void **)
{
    int64_t numbers[] = {2, 5, 60, 0, 9, 70, 1234, 500, 0};
    LimitState states[2];
    int64_t time_us;

    assert_true(sl::read_answer(numbers, 9, 2, states, &time_us));
    assert_int_equal(time_us, 1234);
    assert_true(states[0].is_counted);
    assert_int_equal(states[0].ruled_max, 500);
    assert_int_equal(states[1].used, 9);
    assert_int_equal(states[1].wait_us, 70);
    assert_int_equal(states[1].ruled_max, sl::kOwnMax);

    assert_true(sl::read_answer(numbers, 7, 2, states, &time_us));
    assert_int_equal(states[0].ruled_max, sl::kOwnMax);

    numbers[8] = -1;
    assert_false(sl::read_answer(numbers, 9, 2, states, &time_us));
}

void who_is_banned_is_neither_admitted_nor_counted(void **)
{
    int64_t numbers[] = {3, 5, 60, 1234};
    LimitState state;
    int64_t time_us;

    assert_true(sl::read_answer(numbers, 4, 1, &state, &time_us));
    assert_true(state.is_banned);
    assert_false(state.admits);
    assert_false(state.is_counted);
    assert_int_equal(state.used, 5);
    assert_int_equal(state.wait_us, 60);

    for (int64_t admits : {0, 1, 2}) {
        numbers[0] = admits;
        assert_true(sl::read_answer(numbers, 4, 1, &state, &time_us));
        assert_false(state.is_banned);
    }
}

void a_number_of_limits_that_overflows_is_refused(void **)
{
    LimitState states[2] = {};
    int64_t time_us;
    int64_t numbers[] = {1, 1, 1, 1, 1, 1};
    size_t limits = SIZE_MAX / 3 + 2;

    assert_int_equal(sl::numbers_in_answer(limits), 6);
    assert_false(sl::read_answer(numbers, 6, limits, states, &time_us));
}

void admits_is_zero_to_three_and_nothing_else(void **)
{
    for (int64_t admits : {0, 1, 2, 3}) {
        assert_true(is_read({admits, 1, 1, 1}, 1));
    }

    for (int64_t admits : {int64_t{4}, int64_t{-1}, int64_t{1} << 32,
                           (int64_t{1} << 32) + 1, INT64_MAX, INT64_MIN})
    {
        assert_false(is_read({admits, 1, 1, 1}, 1));
    }
}

void used_wait_and_time_are_never_negative(void **)
{
    constexpr int64_t kDecade = int64_t{10} * 365 * 86400 * 1000000;

    for (size_t place : {1, 2, 3}) {
        for (int64_t number : {int64_t{-1}, int64_t{0}, kDecade, INT64_MIN}) {
            Numbers numbers = {2, 1, 1, 1};
            numbers[place] = number;

            assert_int_equal(is_read(numbers, 1), number >= 0);

            numbers[0] = 0;
            assert_int_equal(is_read(numbers, 1), number >= 0);
        }
    }
}

void a_wait_of_centuries_is_nonsense(void **)
{
    constexpr int64_t kYear = int64_t{366} * 86400 * 1000000;

    assert_true(is_read({0, 1, 100 * kYear, 1}, 1));
    assert_false(is_read({0, 1, 100 * kYear + 1, 1}, 1));
    assert_false(is_read({0, 1, INT64_MAX, 1}, 1));
}

void one_wrong_number_anywhere_spoils_the_answer(void **)
{
    for (size_t wrong = 0; wrong < sl::numbers_in_answer(sl::kMaxLimits);
         wrong++) {
        Numbers numbers = good_answer(sl::kMaxLimits);
        numbers[wrong] = -1;

        assert_false(is_read(numbers, sl::kMaxLimits));
    }
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(three_numbers_and_the_time_become_one_state),
        cmocka_unit_test(zero_in_the_first_place_is_a_refusal),
        cmocka_unit_test(one_in_the_first_place_admits_without_counting),
        cmocka_unit_test(states_are_read_limit_by_limit_and_no_further),
        cmocka_unit_test(up_to_32_limits_are_read),
        cmocka_unit_test(about_no_limits_there_is_only_the_time),
        cmocka_unit_test(
            only_three_numbers_per_limit_and_the_time_are_an_answer),
        cmocka_unit_test(
            after_the_time_there_may_be_another_max_for_each_limit),
        cmocka_unit_test(who_is_banned_is_neither_admitted_nor_counted),
        cmocka_unit_test(a_number_of_limits_that_overflows_is_refused),
        cmocka_unit_test(admits_is_zero_to_three_and_nothing_else),
        cmocka_unit_test(used_wait_and_time_are_never_negative),
        cmocka_unit_test(a_wait_of_centuries_is_nonsense),
        cmocka_unit_test(one_wrong_number_anywhere_spoils_the_answer),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
