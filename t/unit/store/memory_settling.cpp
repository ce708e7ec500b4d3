/* What requests have cost after all, in place of what was counted. */

#include <algorithm>
#include <string>
#include <vector>

#include "memory_table.h"

namespace {

using sl::Decided;
using sl::LimitQuery;
using sl::LimitState;

constexpr int64_t kNow = 7200 * kSecond;
constexpr int64_t kHour = 3600 * kSecond;
constexpr int64_t kMostGiven = 1000000000000000;

LimitQuery with_cost(LimitQuery limit, int64_t cost)
{
    limit.cost = cost;
    return limit;
}

/* A request that was counted. */
struct Request {
    LimitQuery limit;
    LimitState state;
    int64_t time;
};

Request count(Table *t, const LimitQuery &limit, int64_t now)
{
    Request request{limit, {}, 0};

    assert_true(t->ask(limit, now, &request.state, &request.time));
    assert_true(request.state.admits);

    return request;
}

bool settle(Table *t, const Request &request, int64_t true_cost, int64_t now)
{
    return t->settle(request.limit, request.state, request.time, true_cost,
                     now);
}

LimitState look(Table *t, const LimitQuery &limit, int64_t now,
                int64_t cost = 0)
{
    LimitState state;

    assert_true(t->ask(with_cost(limit, cost), now, &state));

    return state;
}

void what_has_cost_less_keeps_its_time_and_costs_less(void **)
{
    Table t;
    LimitQuery limit = with_cost(limit_of("client", 20), 5);
    Request first = count(&t, limit, kNow);
    Request second = count(&t, limit, kNow + kSecond);

    assert_true(settle(&t, first, 2, kNow + 2 * kSecond));
    assert_int_equal(look(&t, limit, kNow + 3 * kSecond).used, 7);
    assert_int_equal(look(&t, limit, kNow + kHour).used, 5);

    assert_true(settle(&t, second, 4, kNow + kHour));
    assert_int_equal(look(&t, limit, kNow + kHour + 1).used, 4);
    assert_int_equal(look(&t, limit, kNow + kHour + kSecond).used, 0);
}

void less_is_given_back_only_once(void **)
{
    Table t;
    LimitQuery limit = with_cost(limit_of("client", 20), 5);
    Request request = count(&t, limit, kNow);

    for (int i = 0; i < 3; i++) {
        assert_true(settle(&t, request, 2, kNow + 1));
        assert_int_equal(look(&t, limit, kNow + 2).used, 2);
    }

    /* what is left of it can still be taken back */
    assert_true(settle(&t, request, 0, kNow + 3));
    assert_int_equal(look(&t, limit, kNow + 4).used, 0);
}

void what_is_left_after_some_was_dropped_can_only_be_taken_back(void **)
{
    Table t;
    LimitQuery limit = with_cost(limit_of("client", 10), 5);

    limit.counts_refused = true;

    Request first = count(&t, limit, kNow);
    Request second = count(&t, limit, kNow + 1);

    /* two of the first one's five units are left */
    assert_false(look(&t, limit, kNow + 2, 3).admits);
    assert_true(settle(&t, first, 1, kNow + 3));
    assert_int_equal(look(&t, limit, kNow + 4).used, 10);
    assert_true(settle(&t, first, 0, kNow + 5));
    assert_int_equal(look(&t, limit, kNow + 6).used, 8);

    for (int i = 0; i < 5; i++) {
        assert_int_equal(look(&t, limit, kNow + 7, 5).used, 10);
    }

    /* nothing of the second one is */
    assert_true(settle(&t, second, 0, kNow + 8));
    assert_int_equal(look(&t, limit, kNow + 9).used, 10);
}

void what_has_cost_nothing_takes_no_memory(void **)
{
    Table t;
    LimitQuery limit = with_cost(limit_of("client", 1000), 5);
    std::vector<Request> requests;

    for (int i = 0; i < 50; i++) {
        requests.push_back(count(&t, limit, kNow + i));
    }

    for (const Request &request : requests) {
        assert_true(settle(&t, request, 0, kNow + kSecond));
    }

    sl::TableStats stats = t.table.stats();

    assert_int_equal(stats.free_cells + stats.keys, stats.cells);
}

void what_has_cost_as_much_as_thought_changes_nothing(void **)
{
    Table t;
    LimitQuery limit = with_cost(limit_of("client", 20), 5);
    Request request = count(&t, limit, kNow);

    assert_true(settle(&t, request, 5, kNow + kSecond));
    assert_int_equal(look(&t, limit, kNow + 2 * kSecond).used, 5);
    assert_int_equal(look(&t, limit, kNow + kHour).used, 0);
}

void what_has_cost_more_counts_from_then_on(void **)
{
    Table t;
    LimitQuery limit = with_cost(limit_of("client", 20), 5);
    Request request = count(&t, limit, kNow);
    int64_t ends = kNow + 600 * kSecond;

    assert_true(settle(&t, request, 18, ends));
    assert_int_equal(look(&t, limit, ends + 1).used, 18);
    assert_int_equal(look(&t, limit, kNow + kHour).used, 13);
    assert_int_equal(look(&t, limit, ends + kHour - 1).used, 13);
    assert_int_equal(look(&t, limit, ends + kHour).used, 0);
}

void more_is_counted_beyond_max_and_the_next_ones_wait_for_it(void **)
{
    Table t;
    LimitQuery limit = with_cost(limit_of("client", 20), 5);
    Request request = count(&t, limit, kNow);
    int64_t ends = kNow + 600 * kSecond;

    assert_true(settle(&t, request, 1000, ends));

    LimitState state = look(&t, limit, ends + kSecond, 1);

    assert_false(state.admits);
    assert_int_equal(state.used, 1000);
    assert_int_equal(state.wait_us, kHour - kSecond);
    assert_false(look(&t, limit, ends + kHour - 1, 20).admits);
    assert_true(look(&t, limit, ends + kHour, 20).admits);
}

void one_that_only_looked_is_charged_all_of_it(void **)
{
    Table t;
    LimitQuery limit = with_cost(limit_of("client", 20), 0);
    Request request = count(&t, limit, kNow);

    assert_false(request.state.is_counted);
    assert_true(settle(&t, request, 7, kNow + kSecond));
    assert_int_equal(look(&t, limit, kNow + 2 * kSecond).used, 7);
}

void what_ends_after_its_window_is_charged_what_was_more(void **)
{
    for (bool is_forgotten : {false, true}) {
        Table t;
        LimitQuery limit = with_cost(limit_of("client", 20), 5);
        Request request = count(&t, limit, kNow);
        int64_t ends = kNow + 5 * kHour;
        sl::Standing standing;

        if (is_forgotten) {
            t.table.intervene(limit, {sl::Act::kForget}, ends, &standing);
            assert_int_equal(t.table.stats().keys, 0);
        }

        assert_true(settle(&t, request, 12, ends));
        assert_int_equal(look(&t, limit, ends + 1).used, 7);
        assert_int_equal(look(&t, limit, ends + kHour).used, 0);
    }
}

void buckets_give_back_where_it_was_and_count_more_where_they_are(void **)
{
    Table t;
    LimitQuery limit = with_cost(limit_of("client", 20, 6), 5);
    Request first = count(&t, limit, kNow);
    Request second = count(&t, limit, kNow + 1);
    int64_t ends = kNow + 1200 * kSecond;

    assert_true(settle(&t, first, 2, ends));
    assert_true(settle(&t, second, 8, ends));
    assert_int_equal(look(&t, limit, ends + 1).used, 10);
    assert_int_equal(look(&t, limit, kNow + 600 * kSecond + kHour).used, 3);
    assert_int_equal(look(&t, limit, ends + 600 * kSecond + kHour - 1).used, 3);
    assert_int_equal(look(&t, limit, ends + 600 * kSecond + kHour).used, 0);
}

void several_limits_are_settled_each_for_itself(void **)
{
    Table t;
    std::vector<LimitQuery> limits = {with_cost(limit_of("less", 20), 5),
                                      with_cost(limit_of("more", 20), 5),
                                      with_cost(limit_of("nothing", 20, 6), 5),
                                      with_cost(limit_of("same", 20), 5)};
    const int64_t true_costs[] = {2, 9, 0, 5};
    std::vector<LimitState> states(limits.size());
    int64_t time;

    assert_true(
        t.table.ask(limits.data(), limits.size(), kNow, states.data(), &time)
        == Decided::kYes);

    for (size_t i = 0; i < limits.size(); i++) {
        limits[i].place = states[i].place;
        limits[i].true_cost = true_costs[i];
    }

    assert_true(t.table.settle(limits.data(), limits.size(), time, kNow + 1)
                == Decided::kYes);

    for (size_t i = 0; i < limits.size(); i++) {
        assert_int_equal(look(&t, limits[i], kNow + 2).used, true_costs[i]);
    }
}

void what_has_cost_more_has_a_time_of_its_own(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 20);
    Request request = count(&t, limit, kNow);

    /* at the same microsecond, and when the clock has stepped back */
    assert_true(settle(&t, request, 3, kNow));
    assert_int_equal(count(&t, limit, kNow).time, kNow + 2);
    assert_true(settle(&t, request, 3, kNow - kSecond));
    assert_int_equal(count(&t, limit, kNow - kSecond).time, kNow + 4);
    assert_int_equal(look(&t, limit, kNow).used, 7);
}

void no_more_is_used_than_sums_can_take(void **)
{
    for (unsigned buckets : {0u, 6u}) {
        Table t;
        LimitQuery limit = limit_of("client", kMostGiven, buckets);
        std::vector<Request> requests;

        for (int i = 0; i < 20; i++) {
            requests.push_back(count(&t, limit, kNow + i));
        }

        for (size_t i = 0; i < requests.size(); i++) {
            int64_t more = static_cast<int64_t>(i + 1) * (kMostGiven - 1);

            assert_true(settle(&t, requests[i], kMostGiven, kNow + kSecond));
            assert_int_equal(look(&t, limit, kNow + kSecond).used,
                             std::min(20 + more, sl::kMostUsed));
        }

        assert_int_equal(look(&t, limit, kNow + 2 * kHour).used, 0);
    }
}

void refused_ones_do_not_go_beyond_it_either(void **)
{
    Table t;
    LimitQuery limit = with_cost(limit_of("client", kMostGiven, 6), kMostGiven);
    int64_t used = 0;

    limit.counts_refused = true;

    Request request = count(&t, limit, kNow);

    request.limit.cost = 0;

    for (int i = 0; i < 7; i++) {
        assert_true(settle(&t, request, kMostGiven, kNow + 1));
    }

    for (int64_t i = 0; i < 5; i++) {
        LimitState state = look(&t, limit, kNow + 2 + i, kMostGiven);

        assert_false(state.admits);
        assert_true(state.used >= used && state.used <= sl::kMostUsed);
        used = state.used;
    }

    assert_int_equal(used, sl::kMostUsed);
}

void operators_see_what_was_counted_later(void **)
{
    Table t;
    LimitQuery limit = with_cost(limit_of("client", 20), 5);
    Request request = count(&t, limit, kNow);
    sl::Standing standing;

    assert_true(settle(&t, request, 30, kNow + kSecond));
    assert_true(t.table.intervene(limit, {sl::Act::kLook}, kNow + 3 * kSecond,
                                  &standing)
                == Decided::kYes);
    assert_int_equal(standing.used, 30);
    assert_int_equal(standing.entries, 30);
    assert_int_equal(standing.shown, 2);
    assert_int_equal(standing.requests[0].ago_us, 2 * kSecond);
    assert_int_equal(standing.requests[0].cost, 25);
    assert_int_equal(standing.requests[1].ago_us, 3 * kSecond);
    assert_int_equal(standing.requests[1].cost, 5);
    assert_int_equal(standing.wait_us, kHour - 3 * kSecond);
}

void a_ban_does_not_keep_it_from_being_settled(void **)
{
    Table t;
    LimitQuery limit = with_cost(limit_of("client", 20), 5);
    Request request = count(&t, limit, kNow);
    sl::Standing standing;

    t.table.intervene(limit, {sl::Act::kBan, kHour}, kNow, &standing);
    assert_true(settle(&t, request, 9, kNow + 1));

    LimitState state = look(&t, limit, kNow + 2);

    assert_true(state.is_banned);
    assert_int_equal(state.used, 9);
}

/* What is less needs none. */
void without_memory_more_is_not_counted_and_that_is_told(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 1000000);
    std::vector<Request> requests;

    while (t.table.stats().free_cells > 1) {
        requests.push_back(count(&t, limit, kNow));
    }

    auto used = static_cast<int64_t>(requests.size());

    assert_false(settle(&t, requests[0], 5, kNow + 2));
    assert_int_equal(look(&t, limit, kNow + 3).used, used);
    assert_true(settle(&t, requests[0], 0, kNow + 3));
    assert_int_equal(look(&t, limit, kNow + 4).used, used - 1);
    assert_int_equal(t.table.stats().evictions, 0);
}

void those_who_are_settled_are_not_forgotten_for_the_sake_of_it(void **)
{
    Table t;
    LimitQuery limit = with_cost(limit_of("client", 20), 5);
    Request request = count(&t, limit, kNow);

    for (int i = 0; t.table.stats().free_cells > 1; i++) {
        count(&t, limit_of("other" + std::to_string(i), 9), kNow);
    }

    assert_true(settle(&t, request, 9, kNow + 1));
    assert_int_equal(look(&t, limit, kNow + 2).used, 9);
    assert_int_equal(t.table.stats().evictions, 1);
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(what_has_cost_less_keeps_its_time_and_costs_less),
        cmocka_unit_test(less_is_given_back_only_once),
        cmocka_unit_test(
            what_is_left_after_some_was_dropped_can_only_be_taken_back),
        cmocka_unit_test(what_has_cost_nothing_takes_no_memory),
        cmocka_unit_test(what_has_cost_as_much_as_thought_changes_nothing),
        cmocka_unit_test(what_has_cost_more_counts_from_then_on),
        cmocka_unit_test(
            more_is_counted_beyond_max_and_the_next_ones_wait_for_it),
        cmocka_unit_test(one_that_only_looked_is_charged_all_of_it),
        cmocka_unit_test(what_ends_after_its_window_is_charged_what_was_more),
        cmocka_unit_test(
            buckets_give_back_where_it_was_and_count_more_where_they_are),
        cmocka_unit_test(several_limits_are_settled_each_for_itself),
        cmocka_unit_test(what_has_cost_more_has_a_time_of_its_own),
        cmocka_unit_test(no_more_is_used_than_sums_can_take),
        cmocka_unit_test(refused_ones_do_not_go_beyond_it_either),
        cmocka_unit_test(operators_see_what_was_counted_later),
        cmocka_unit_test(a_ban_does_not_keep_it_from_being_settled),
        cmocka_unit_test(without_memory_more_is_not_counted_and_that_is_told),
        cmocka_unit_test(
            those_who_are_settled_are_not_forgotten_for_the_sake_of_it),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
