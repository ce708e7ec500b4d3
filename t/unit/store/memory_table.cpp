/* Decisions, who makes room for whom, and clocks that are set back; t/model
 * compares the decisions with a model. */

#include "store/pure/sl_memory_table.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "memory_table.h"

namespace {

using sl::LimitQuery;
using sl::LimitState;

void soon_after_the_start_of_the_machine_buckets_count_as_ever(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5, 6);
    LimitState state;

    for (int i = 1; i <= 5; i++) {
        assert_true(t.ask(limit, i * kSecond, &state));
        assert_true(state.admits);
        assert_int_equal(state.used, i);
    }

    assert_true(t.ask(limit, 6 * kSecond, &state));
    assert_false(state.admits);
    assert_int_equal(state.wait_us, (7 * 600 - 6) * kSecond);

    t.table.leave_half_done();
    assert_true(t.ask(limit, 7 * kSecond, &state));
    assert_false(state.admits);
    assert_int_equal(state.used, 5);
    assert_int_equal(t.table.stats().recoveries, 1);
}

void who_keeps_coming_is_not_driven_out_by_those_who_come_once(void **)
{
    Table t;
    LimitState state;
    int64_t now = kSecond;

    for (int i = 0; i < 3; i++) {
        assert_true(t.ask(limit_of("offender", 3), ++now, &state));
    }

    for (int i = 0; i < 100000; i++) {
        std::string other = "other" + std::to_string(i);

        assert_true(t.ask(limit_of(other, 3), ++now, &state));
        assert_true(state.admits);
    }

    assert_true(t.table.stats().evictions > 90000);
    assert_true(t.ask(limit_of("offender", 3), ++now, &state));
    assert_false(state.admits);
}

void those_whose_window_has_passed_go_first_and_are_no_loss(void **)
{
    Table t;
    LimitState state;

    for (int64_t i = 0; i < 100000; i++) {
        std::string client = "client" + std::to_string(i);

        /* an hour's window: a hundred are in it at a time */
        assert_true(t.ask(limit_of(client, 3), (i + 1) * 36 * kSecond, &state));
    }

    assert_int_equal(t.table.stats().evictions, 0);
}

LimitQuery limit_for(std::string_view key, int64_t window_us)
{
    LimitQuery limit = limit_of(key, 3);

    limit.window_us = window_us;

    return limit;
}

/* Clients with a window of an hour, "other0" and so on, until there is no room
 * for one more. */
void fill_up(Table *t, int64_t now)
{
    LimitState state;

    for (int i = 0; t->table.stats().free_cells >= 2; i++) {
        std::string other = "other" + std::to_string(i);

        assert_true(t->ask(limit_for(other, 3600 * kSecond), ++now, &state));
    }

    assert_int_equal(t->table.stats().evictions, 0);
}

/* What is counted of a client, without counting one more. */
int64_t used_by(Table *t, LimitQuery limit, int64_t now)
{
    LimitState state;

    limit.cost = 0;
    assert_true(t->ask(limit, now, &state));

    return state.used;
}

void whose_window_has_passed_goes_before_those_with_longer_windows(void **)
{
    Table t;
    LimitState state;
    int64_t now = kSecond;

    assert_true(t.ask(limit_for("short", kSecond), now, &state));
    fill_up(&t, now);
    now += 10 * kSecond;

    assert_true(t.ask(limit_for("new", 3600 * kSecond), now, &state));
    assert_int_equal(t.table.stats().evictions, 0);
    assert_int_equal(used_by(&t, limit_for("other0", 3600 * kSecond), now), 1);
}

void who_was_seen_longest_ago_goes_first_whatever_the_windows(void **)
{
    for (int64_t window : {60 * kSecond, 86400 * kSecond}) {
        Table t;
        LimitState state;
        int64_t now = kSecond;
        LimitQuery oldest = limit_for("oldest", window);

        assert_true(t.ask(oldest, now, &state));
        now += 10 * kSecond;
        fill_up(&t, now);
        now += 10 * kSecond;

        assert_true(t.ask(limit_for("new", 3600 * kSecond), now, &state));
        assert_int_equal(t.table.stats().evictions, 1);
        assert_int_equal(used_by(&t, oldest, now), 0);
        assert_int_equal(used_by(&t, limit_for("other0", 3600 * kSecond), now),
                         1);
    }
}

void a_client_that_takes_all_memory_has_no_answer(void **)
{
    Table t;
    LimitState state;
    int64_t now = kSecond;
    int counted = 0;

    while (t.ask(limit_of("greedy", 1000000), ++now, &state)) {
        counted++;
    }

    assert_true(counted > 2000);
    assert_true(t.ask(limit_of("greedy", 1000), ++now, &state));
    assert_false(state.admits);
    assert_true(t.ask(limit_of("other", 1), ++now, &state));
    assert_true(state.admits);
}

void limits_that_take_all_memory_do_not_drive_each_other_out(void **)
{
    Table t;
    LimitQuery limits[] = {limit_of("first", 1000000),
                           limit_of("second", 1000000)};
    LimitState states[2];
    int64_t now = kSecond;
    int64_t time;
    int counted = 0;

    while (t.table.ask(limits, 2, ++now, states, &time) == sl::Decided::kYes) {
        counted++;
    }

    assert_true(counted > 1000);
    assert_int_equal(used_by(&t, limits[0], now), counted);
    assert_int_equal(used_by(&t, limits[1], now), counted);
}

void if_the_clock_steps_back_nobody_waits_longer_than_a_window(void **)
{
    constexpr int64_t kStart = int64_t{1000} * 86400 * kSecond;

    for (unsigned buckets : {0, 6}) {
        for (int64_t step :
             {int64_t{1}, kSecond, 1800 * kSecond, 3600 * kSecond,
              7200 * kSecond, int64_t{900} * 86400 * kSecond})
        {
            Table t;
            LimitQuery limit = limit_of("client", 3, buckets);
            int64_t longest = limit.window_us;
            LimitState state;
            int64_t now = kStart;

            if (buckets > 0) {
                longest += longest / buckets;
            }

            for (int i = 0; i < 3; i++) {
                assert_true(t.ask(limit, now, &state));
                assert_true(state.admits);
            }

            /* nothing has left early */
            now -= step;
            assert_true(t.ask(limit, now, &state));
            assert_false(state.admits);
            assert_int_equal(state.used, 3);
            assert_in_range(state.wait_us, limit.window_us - 10, longest);

            int64_t wait = state.wait_us;

            assert_true(t.ask(limit, now + wait - 1, &state));
            assert_false(state.admits);
            assert_in_range(state.wait_us, 1, 10);

            assert_true(t.ask(limit, now + wait + 10, &state));
            assert_true(state.admits);
        }
    }
}

void a_clock_that_keeps_stepping_back_does_not_stop_time(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 1);
    LimitState state;
    int64_t now = int64_t{1000} * 86400 * kSecond;

    assert_true(t.ask(limit, now, &state));

    /* half an hour forwards, a day back */
    for (int i = 0; i < 10; i++) {
        now -= 86400 * kSecond;
        assert_true(t.ask(limit, now, &state));
        assert_int_equal(state.admits, i > 0 && i % 2 == 0);

        now += 1800 * kSecond;
        t.knows(limit, now);
    }
}

void no_two_zones_clients_or_widths_of_buckets_are_mixed_up(void **)
{
    Table t(1 << 20);
    std::vector<std::string> zones;
    const std::string keys[] = {"", "z", "zz", std::string(8, 'z'),
                                std::string(100, 'z')};

    /* what of two words is the zone, and what is the key? */
    for (size_t size = 1; size <= 64; size++) {
        zones.emplace_back(size, 'z');
    }

    zones.push_back(std::string(63, 'z') + "y");
    zones.push_back("y" + std::string(63, 'z'));

    for (int64_t round = 1; round <= 2; round++) {
        for (const std::string &zone : zones) {
            for (const std::string &key : keys) {
                for (unsigned buckets : {0, 6, 7}) {
                    LimitQuery limit = limit_of(key, 9, buckets);
                    LimitState state;

                    limit.zone = zone;
                    assert_true(t.ask(limit, kSecond, &state));
                    assert_int_equal(state.used, round);
                }
            }
        }
    }

    assert_int_equal(t.table.stats().keys, zones.size() * 5 * 3);
}

/* All that is in the table is packed. */
void a_packed_log_is_a_log(void **)
{
    Table t;
    LimitQuery log = limit_of("client", 2);
    LimitQuery packed = log;
    LimitState state;

    packed.algorithm = sl::Algorithm::kPacked;

    assert_true(t.ask(log, kSecond, &state));
    assert_true(t.ask(packed, 2 * kSecond, &state));
    assert_int_equal(state.used, 2);
    assert_true(t.ask(packed, 3 * kSecond, &state));
    assert_false(state.admits);
}

void counts_outlive_another_window_of_buckets_of_the_same_width(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 9, 6);
    LimitState state;

    assert_true(t.ask(limit, kSecond, &state));

    limit.window_us /= 2;
    limit.buckets /= 2;
    limit.max = 5;
    assert_true(t.ask(limit, kSecond, &state));
    assert_int_equal(state.used, 2);

    limit.buckets = 6;
    assert_true(t.ask(limit, kSecond, &state));
    assert_int_equal(state.used, 1);
}

/* Arrays that end where the last limit does: sanitizers notice whoever looks
 * behind it. */
void a_request_may_have_as_many_limits_as_there_can_be(void **)
{
    Table t;
    std::vector<std::string> zones;
    std::vector<LimitQuery> limits(sl::kMaxLimits, limit_of("client", 3));
    std::vector<LimitState> states(sl::kMaxLimits);
    int64_t time;

    for (size_t i = 0; i < limits.size(); i++) {
        zones.push_back("zone" + std::to_string(i));
        limits[i].counts_refused = i % 2 == 0;
    }

    for (size_t i = 0; i < limits.size(); i++) {
        limits[i].zone = zones[i];
    }

    for (int64_t used = 1; used <= 3; used++) {
        assert_true(t.table.ask(limits.data(), limits.size(), used * kSecond,
                                states.data(), &time)
                    == sl::Decided::kYes);

        for (const LimitState &state : states) {
            assert_true(state.is_counted);
            assert_int_equal(state.used, used);
        }
    }

    for (size_t i = 0; i < limits.size(); i++) {
        limits[i].place = states[i].place;
    }

    t.table.settle(limits.data(), limits.size(), time, time);

    for (const LimitQuery &limit : limits) {
        assert_int_equal(used_by(&t, limit, 4 * kSecond), 2);
    }
}

void where_refused_ones_count_the_newest_max_units_decide(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 2);
    LimitState state;

    limit.counts_refused = true;

    for (int64_t i = 1; i <= 100; i++) {
        assert_true(t.ask(limit, i * kSecond, &state));
        assert_int_equal(state.admits, i <= 2);
        assert_int_equal(state.used, std::min<int64_t>(i, 2));

        /* the older of two, of which this is one */
        int64_t oldest = std::max<int64_t>(i - 1, 1);

        assert_int_equal(state.wait_us,
                         limit.window_us - (i - oldest) * kSecond);
    }

    /* a key and one or two blocks */
    assert_true(t.table.stats().free_cells >= t.table.stats().cells - 3);

    /* a window after the older one there is room for one */
    int64_t later = 99 * kSecond + limit.window_us;

    assert_true(t.ask(limit, later, &state));
    assert_true(state.admits);
    assert_true(t.ask(limit, later + 1, &state));
    assert_false(state.admits);
}

void of_what_cost_more_a_part_may_go(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 10);
    LimitState state;

    limit.counts_refused = true;

    for (int64_t i = 1; i <= 2; i++) {
        limit.cost = 5;
        assert_true(t.ask(limit, i * kSecond, &state));
        assert_true(state.admits);
    }

    /* Two of the first one's units stay; they and one more must leave for 3.
     * Then two of the second one's do; they and three more must for 5. */
    limit.cost = 3;
    assert_true(t.ask(limit, 3 * kSecond, &state));
    assert_false(state.admits);
    assert_int_equal(state.used, 10);
    assert_int_equal(state.wait_us, limit.window_us - kSecond);

    limit.cost = 5;
    assert_true(t.ask(limit, 4 * kSecond, &state));
    assert_int_equal(state.used, 10);
    assert_int_equal(state.wait_us, limit.window_us - kSecond);
    assert_int_equal(used_by(&t, limit, limit.window_us + kSecond), 10);
    assert_int_equal(used_by(&t, limit, limit.window_us + 2 * kSecond), 8);
    assert_int_equal(used_by(&t, limit, limit.window_us + 3 * kSecond), 5);
}

void if_max_falls_those_too_many_go_many_at_a_time(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 2500);
    LimitState state;
    int64_t now = kSecond;

    limit.counts_refused = true;

    for (int64_t i = 1; i <= 2600; i++) {
        assert_true(t.ask(limit, ++now, &state));
        assert_int_equal(state.used, std::min<int64_t>(i, 2500));
    }

    limit.max = 2;

    for (int64_t used : {1501, 502, 2, 2}) {
        assert_true(t.ask(limit, ++now, &state));
        assert_int_equal(state.used, used);
        assert_int_equal(state.wait_us, limit.window_us - 1);
    }

    assert_true(t.table.stats().free_cells >= t.table.stats().cells - 3);
}

/* An admitted request that is counted drops nothing. */
void only_who_is_refused_makes_others_count_no_more(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 9);
    LimitState state;

    for (int64_t i = 1; i <= 9; i++) {
        assert_true(t.ask(limit, i * kSecond, &state));
    }

    limit.max = 5;

    for (bool counts_refused : {false, true}) {
        limit.counts_refused = counts_refused;
        assert_int_equal(used_by(&t, limit, 10 * kSecond), 9);
    }

    assert_true(t.ask(limit, 11 * kSecond, &state));
    assert_int_equal(state.used, 5);
}

/* What was taken back from the middle does not stop what is dropped. */
void what_was_taken_back_is_passed_over(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 100);
    LimitState states[100];
    LimitState state;
    int64_t times[100];
    int64_t now = kSecond;

    limit.counts_refused = true;

    for (int i = 0; i < 100; i++) {
        assert_true(t.ask(limit, ++now, &states[i], &times[i]));
    }

    for (int i = 0; i < 100; i++) {
        if (i % 3 != 0) {
            t.take_back(limit, states[i], times[i]);
        }
    }

    limit.max = 10;

    /* 34 are left */
    assert_true(t.ask(limit, ++now, &state));
    assert_int_equal(state.used, 10);
    assert_int_equal(state.wait_us, times[99 - 8 * 3] + limit.window_us - now);
}

void in_buckets_all_that_were_refused_add_up(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 2, 6);
    LimitState state;

    limit.counts_refused = true;

    for (int64_t i = 1; i <= 100; i++) {
        assert_true(t.ask(limit, i * kSecond, &state));
        assert_int_equal(state.admits, i <= 2);
        assert_int_equal(state.used, i);
    }
}

/* The last one was taken back, and the others have expired. */
void what_is_dropped_to_the_end_is_decided_about_at_once(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 9);
    LimitState state;
    int64_t time;

    assert_true(t.ask(limit, kSecond, &state, &time));
    assert_true(t.ask(limit, 9 * kSecond, &state, &time));
    t.take_back(limit, state, time);

    int64_t later = limit.window_us + 2 * kSecond;

    assert_true(t.table.ask(&limit, 1, later, &state, &time)
                == sl::Decided::kYes);
    assert_int_equal(state.used, 1);
}

void the_secret_is_the_one_that_was_given(void **)
{
    constexpr size_t kSize = sl::MemoryTable::kSmallestMemory;
    Table t;
    uint8_t secret[sl::MemoryTable::kSecretSize];

    std::iota(std::begin(secret), std::end(secret), 1);
    sl::MemoryTable::format(t.memory.get(), kSize, secret);

    const auto *memory = static_cast<const uint8_t *>(t.memory.get());

    assert_true(std::search(memory, memory + kSize, std::begin(secret),
                            std::end(secret))
                != memory + kSize);
}

void no_two_requests_have_the_same_time(void **)
{
    Table t;
    LimitState state;
    int64_t first;
    int64_t second;

    assert_true(t.ask(limit_of("client", 2), kSecond, &state, &first));
    assert_true(t.ask(limit_of("other", 2), kSecond, &state, &second));
    assert_int_equal(first, kSecond);
    assert_int_equal(second, kSecond + 1);
}

/* By the time it is taken back, it may be another client's cell. */
void the_place_of_a_bucket_does_not_matter(void **)
{
    Table t;
    LimitQuery client = limit_of("client", 9, 6);
    LimitQuery other = limit_of("other", 9, 6);
    LimitState state;
    int64_t time;

    assert_true(t.ask(client, kSecond, &state, &time));
    assert_true(t.ask(other, kSecond, &state, &time));

    t.take_back(client, state, time);
    assert_int_equal(used_by(&t, client, 2 * kSecond), 0);
    assert_int_equal(used_by(&t, other, 2 * kSecond), 1);

    t.take_back(other, state, time);
    assert_int_equal(used_by(&t, other, 2 * kSecond), 0);
}

void only_what_is_counted_has_a_place(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 1);
    LimitState state;

    assert_true(t.ask(limit, kSecond, &state));
    assert_true(state.place != sl::kNoPlace);

    assert_true(t.ask(limit, kSecond, &state));
    assert_false(state.admits);
    assert_true(state.place == sl::kNoPlace);
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(
            soon_after_the_start_of_the_machine_buckets_count_as_ever),
        cmocka_unit_test(
            who_keeps_coming_is_not_driven_out_by_those_who_come_once),
        cmocka_unit_test(
            those_whose_window_has_passed_go_first_and_are_no_loss),
        cmocka_unit_test(
            whose_window_has_passed_goes_before_those_with_longer_windows),
        cmocka_unit_test(
            who_was_seen_longest_ago_goes_first_whatever_the_windows),
        cmocka_unit_test(a_client_that_takes_all_memory_has_no_answer),
        cmocka_unit_test(
            limits_that_take_all_memory_do_not_drive_each_other_out),
        cmocka_unit_test(
            if_the_clock_steps_back_nobody_waits_longer_than_a_window),
        cmocka_unit_test(a_clock_that_keeps_stepping_back_does_not_stop_time),
        cmocka_unit_test(
            no_two_zones_clients_or_widths_of_buckets_are_mixed_up),
        cmocka_unit_test(a_packed_log_is_a_log),
        cmocka_unit_test(
            counts_outlive_another_window_of_buckets_of_the_same_width),
        cmocka_unit_test(a_request_may_have_as_many_limits_as_there_can_be),
        cmocka_unit_test(where_refused_ones_count_the_newest_max_units_decide),
        cmocka_unit_test(of_what_cost_more_a_part_may_go),
        cmocka_unit_test(only_who_is_refused_makes_others_count_no_more),
        cmocka_unit_test(what_was_taken_back_is_passed_over),
        cmocka_unit_test(in_buckets_all_that_were_refused_add_up),
        cmocka_unit_test(if_max_falls_those_too_many_go_many_at_a_time),
        cmocka_unit_test(what_is_dropped_to_the_end_is_decided_about_at_once),
        cmocka_unit_test(the_secret_is_the_one_that_was_given),
        cmocka_unit_test(no_two_requests_have_the_same_time),
        cmocka_unit_test(the_place_of_a_bucket_does_not_matter),
        cmocka_unit_test(only_what_is_counted_has_a_place),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
