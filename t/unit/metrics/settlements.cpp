/* What requests have cost after all: every one is counted once, in its place,
 * and no number makes another one wrong. */

#include "metrics/pure/sl_settlements.h"

#include <cstring>
#include <thread>
#include <vector>

#include "base/pure/sl_number.h"
#include "unit.h"

namespace {

using sl::Settled;
using sl::Settlement;
using sl::Settlements;

constexpr int64_t kLargest = sl::kLargestCount;

uint64_t requests(const Settlements &settlements, Settled how)
{
    return settlements.requests[static_cast<size_t>(how)].load();
}

uint64_t count(const Settlements &settlements)
{
    uint64_t all = 0;

    for (size_t i = 0; i <= Settlements::kBuckets; i++) {
        all += settlements.in_bucket(i);
    }

    return all;
}

/* The bucket in which a cost is counted. */
size_t bucket_of(int64_t cost)
{
    Settlements settlements{};

    settlements.add({0, cost, true});

    for (size_t i = 0; i <= Settlements::kBuckets; i++) {
        if (settlements.in_bucket(i) == 1) {
            assert_int_equal(count(settlements), 1);
            return i;
        }
    }

    fail();
    return SIZE_MAX;
}

void assert_units(const Settlements &settlements, uint64_t reserved,
                  uint64_t entered, uint64_t given_back, uint64_t sum)
{
    assert_int_equal(settlements.reserved.load(), reserved);
    assert_int_equal(settlements.entered.load(), entered);
    assert_int_equal(settlements.given_back.load(), given_back);
    assert_int_equal(settlements.sum(), sum);
}

void nothing_is_settled_to_begin_with(void **)
{
    Settlements settlements{};

    assert_false(settlements.are_any());
    assert_units(settlements, 0, 0, 0, 0);
    assert_int_equal(count(settlements), 0);
}

void a_request_that_cost_more_has_entered_the_rest(void **)
{
    Settlements settlements{};

    settlements.add({100, 250, true});
    assert_true(settlements.are_any());
    assert_int_equal(requests(settlements, Settled::kUp), 1);
    assert_units(settlements, 100, 150, 0, 250);
}

void a_request_that_cost_less_has_given_back_the_rest(void **)
{
    Settlements settlements{};

    settlements.add({100, 30, true});
    settlements.add({7, 0, true});
    assert_int_equal(requests(settlements, Settled::kDown), 2);
    assert_units(settlements, 107, 0, 77, 30);
}

void a_request_that_cost_just_that_changes_nothing(void **)
{
    Settlements settlements{};

    settlements.add({100, 100, true});
    settlements.add({0, 0, true});
    assert_int_equal(requests(settlements, Settled::kEven), 2);
    assert_units(settlements, 100, 0, 0, 100);
}

void a_reservation_that_stands_is_what_the_request_cost(void **)
{
    Settlements settlements{};

    settlements.add({100, 100, false});
    settlements.add({100, 5, false});
    settlements.add({100, 500, false});
    assert_int_equal(requests(settlements, Settled::kStood), 3);
    assert_units(settlements, 300, 0, 0, 300);
    assert_int_equal(settlements.in_bucket(3), 3);
}

/* A look at each of them alone says that something was settled. */
void each_direction_is_something(void **)
{
    for (size_t i = 0; i < sl::kSettled; i++) {
        Settlements settlements{};

        sl::add(settlements.requests[i]);
        assert_true(settlements.are_any());
    }
}

void names_stand_beside_their_values(void **)
{
    auto name = [](Settled how) {
        return sl::kSettledNames[static_cast<size_t>(how)];
    };

    assert_int_equal(sl::kSettled, 4);
    assert_text_equal(name(Settled::kUp), "up");
    assert_text_equal(name(Settled::kDown), "down");
    assert_text_equal(name(Settled::kEven), "even");
    assert_text_equal(name(Settled::kStood), "stood");
}

void a_bucket_ends_with_its_bound(void **)
{
    for (size_t i = 0; i < Settlements::kBuckets; i++) {
        auto bound = static_cast<int64_t>(Settlements::kBounds[i]);

        assert_int_equal(bucket_of(bound), i);
        assert_int_equal(bucket_of(bound + 1), i + 1);
    }

    assert_int_equal(bucket_of(kLargest), Settlements::kBuckets);
}

/* So that whoever has one of three of these numbers wrong notices. */
void what_was_reserved_and_entered_is_what_it_cost(void **)
{
    Settlements settlements{};
    uint64_t number = 1;

    for (uint64_t n = 1; n <= 1000; n++) {
        int64_t some[2];

        for (int64_t &each : some) {
            number = number * 6364136223846793005 + 1442695040888963407;
            each =
                static_cast<int64_t>((number >> 20) >> number % 40) % kLargest;
        }

        settlements.add({some[0], some[1], n % 7 != 0});
        assert_int_equal(settlements.reserved.load()
                             + settlements.entered.load()
                             - settlements.given_back.load(),
                         settlements.sum());
        assert_int_equal(count(settlements), n);
    }
}

void what_cannot_be_does_not_overflow(void **)
{
    Settlements settlements{};

    settlements.add({INT64_MIN, INT64_MAX, true});
    assert_units(settlements, 0, kLargest, 0, kLargest);
    settlements.add({INT64_MAX, INT64_MIN, true});
    assert_units(settlements, kLargest, kLargest, kLargest, kLargest);
    settlements.add({INT64_MIN, INT64_MIN, false});
    assert_units(settlements, kLargest, kLargest, kLargest, kLargest);
    assert_int_equal(count(settlements), 3);
}

/* 18446 of the largest are the most that fit. A counter that begins anew is
 * what Prometheus expects. */
void sums_start_anew_when_they_are_full(void **)
{
    Settlements settlements{};
    uint64_t sum = 0;

    for (int i = 0; i < 20000; i++) {
        settlements.add({0, kLargest, true});
        sum += static_cast<uint64_t>(kLargest);
    }

    assert_units(settlements, 0, sum, 0, sum);
    assert_int_equal(requests(settlements, Settled::kUp), 20000);
    assert_int_equal(settlements.in_bucket(Settlements::kBuckets), 20000);
}

/* As a killed worker may have left it. */
void whatever_bytes_are_there_can_be_read_and_added_to(void **)
{
    for (int byte : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
        Settlements settlements{};

        memset(static_cast<void *>(&settlements), byte, sizeof(settlements));
        assert_true(settlements.are_any() == (byte != 0));

        uint64_t before = settlements.sum();

        settlements.add({5, 10, true});
        assert_int_equal(settlements.sum(), before + 10);
        (void)count(settlements);
    }
}

void threads_lose_nothing(void **)
{
    Settlements settlements{};
    std::vector<std::thread> threads;

    for (int t = 0; t < 4; t++) {
        threads.emplace_back([&settlements] {
            for (int64_t i = 0; i < 5000; i++) {
                settlements.add({10, i % 20, i % 5 != 0});
            }
        });
    }

    for (std::thread &thread : threads) {
        thread.join();
    }

    assert_int_equal(count(settlements), 20000);
    assert_int_equal(requests(settlements, Settled::kStood), 4000);
    assert_int_equal(settlements.reserved.load(), 200000);
    assert_int_equal(200000 + settlements.entered.load()
                         - settlements.given_back.load(),
                     settlements.sum());
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_settled_to_begin_with),
        cmocka_unit_test(a_request_that_cost_more_has_entered_the_rest),
        cmocka_unit_test(a_request_that_cost_less_has_given_back_the_rest),
        cmocka_unit_test(a_request_that_cost_just_that_changes_nothing),
        cmocka_unit_test(a_reservation_that_stands_is_what_the_request_cost),
        cmocka_unit_test(each_direction_is_something),
        cmocka_unit_test(names_stand_beside_their_values),
        cmocka_unit_test(a_bucket_ends_with_its_bound),
        cmocka_unit_test(what_was_reserved_and_entered_is_what_it_cost),
        cmocka_unit_test(what_cannot_be_does_not_overflow),
        cmocka_unit_test(sums_start_anew_when_they_are_full),
        cmocka_unit_test(whatever_bytes_are_there_can_be_read_and_added_to),
        cmocka_unit_test(threads_lose_nothing),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
