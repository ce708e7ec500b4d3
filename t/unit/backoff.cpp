/* Delays between attempts: growth, ceiling, jitter and reset. */

#include "sl_backoff.h"

#include <initializer_list>

#include "unit.h"

namespace {

/* Without jitter, these delays come one after the other. */
void assert_delays(sl::Backoff backoff,
                   std::initializer_list<uint32_t> expected)
{
    for (uint32_t delay : expected) {
        assert_int_equal(backoff.next(0), delay);
    }
}

void the_first_delay_is_the_one_given(void **)
{
    assert_delays({250, 10000}, {250});
    assert_delays({1, 2}, {1});
}

void delays_double_up_to_the_ceiling_and_stay_there(void **)
{
    assert_delays({100, 5000},
                  {100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000});
}

void a_ceiling_that_is_a_power_of_the_first_is_met_exactly(void **)
{
    assert_delays({4, 16}, {4, 8, 16, 16});
}

void an_odd_ceiling_is_neither_missed_nor_exceeded(void **)
{
    assert_delays({1, 7}, {1, 2, 4, 7, 7});
    assert_delays({3, 7}, {3, 6, 7, 7});
    assert_delays({4, 7}, {4, 7, 7});
}

void a_first_delay_at_the_ceiling_does_not_grow(void **)
{
    assert_delays({500, 500}, {500, 500, 500});
}

void the_largest_ceiling_is_reached_without_overflow(void **)
{
    assert_delays({0x7fffffff, UINT32_MAX},
                  {0x7fffffff, 0xfffffffe, UINT32_MAX, UINT32_MAX});
    assert_delays({0x80000000, UINT32_MAX}, {0x80000000, UINT32_MAX});
}

void a_delay_of_zero_is_no_division_by_zero(void **)
{
    sl::Backoff backoff{0, 1000};

    assert_int_equal(backoff.next(0), 0);
    assert_int_equal(backoff.next(UINT32_MAX), 0);
}

void jitter_takes_every_value_from_half_to_the_whole(void **)
{
    for (uint32_t d : {1, 2, 3, 10, 11}) {
        uint32_t half = d / 2;

        for (uint32_t random = 0; random <= half; random++) {
            assert_int_equal(sl::Backoff(d, d).next(random), d - random);
        }

        /* and starts anew */
        assert_int_equal(sl::Backoff(d, d).next(half + 1), d);
    }
}

void no_random_number_leads_out_of_half_to_the_whole(void **)
{
    uint32_t randoms[] = {0,          1,          49,         50,
                          51,         99,         100,        101,
                          0x7fffffff, 0x80000000, 0xfffffffe, UINT32_MAX};

    for (uint32_t random : randoms) {
        sl::Backoff backoff{100, 5001};

        for (uint32_t d : {100, 200, 400, 800, 1600, 3200, 5001, 5001}) {
            uint32_t delay = backoff.next(random);

            assert_true(delay >= d / 2 && delay <= d);
        }
    }
}

void jitter_does_not_slow_the_growth(void **)
{
    sl::Backoff backoff{100, 1000};

    assert_int_equal(backoff.next(50), 50);
    assert_int_equal(backoff.next(100), 100);
    assert_int_equal(backoff.next(200), 200);
    assert_int_equal(backoff.next(0), 800);
    assert_int_equal(backoff.next(500), 500);
    assert_int_equal(backoff.next(0), 1000);
}

void reset_leads_back_to_the_first_delay(void **)
{
    sl::Backoff backoff{100, 300};

    for (int attempts : {1, 2, 10}) {
        for (int i = 0; i < attempts; i++) {
            backoff.next(0);
        }

        backoff.reset();
        assert_int_equal(backoff.next(0), 100);
        assert_int_equal(backoff.next(0), 200);
        assert_int_equal(backoff.next(0), 300);
        backoff.reset();
    }
}

void reset_before_any_delay_changes_nothing(void **)
{
    sl::Backoff backoff{100, 300};

    backoff.reset();
    assert_delays(backoff, {100, 200, 300});
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(the_first_delay_is_the_one_given),
        cmocka_unit_test(delays_double_up_to_the_ceiling_and_stay_there),
        cmocka_unit_test(a_ceiling_that_is_a_power_of_the_first_is_met_exactly),
        cmocka_unit_test(an_odd_ceiling_is_neither_missed_nor_exceeded),
        cmocka_unit_test(a_first_delay_at_the_ceiling_does_not_grow),
        cmocka_unit_test(the_largest_ceiling_is_reached_without_overflow),
        cmocka_unit_test(a_delay_of_zero_is_no_division_by_zero),
        cmocka_unit_test(jitter_takes_every_value_from_half_to_the_whole),
        cmocka_unit_test(no_random_number_leads_out_of_half_to_the_whole),
        cmocka_unit_test(jitter_does_not_slow_the_growth),
        cmocka_unit_test(reset_leads_back_to_the_first_delay),
        cmocka_unit_test(reset_before_any_delay_changes_nothing),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
