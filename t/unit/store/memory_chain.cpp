/* What is taken back of what was counted. */

#include "store/pure/sl_memory_chain.h"

#include <string>
#include <vector>

#include "memory_table.h"

namespace {

using sl::Decided;
using sl::LimitQuery;
using sl::LimitState;

/* A client's requests, and what is needed to take them back. */
struct Client {
    struct Counted {
        LimitState state;
        int64_t time;
    };

    Table &t;
    LimitQuery limit;
    std::vector<Counted> counted;

    Client(Table &table, const LimitQuery &query) : t(table), limit(query) {}

    void ask(int64_t now)
    {
        Counted c;

        assert_true(t.ask(limit, now, &c.state, &c.time));
        assert_true(c.state.is_counted);
        counted.push_back(c);
    }

    void take_back(size_t i)
    {
        t.take_back(limit, counted[i].state, counted[i].time);
    }

    int64_t used(int64_t now)
    {
        LimitQuery look = limit;
        LimitState state;

        look.cost = 0;
        assert_true(t.ask(look, now, &state));

        return state.used;
    }
};

void what_is_taken_back_counts_no_more_wherever_it_stands(void **)
{
    for (int64_t cost : {1, 3}) {
        Table t;
        Client client(t, limit_of("client", 1000));
        int64_t now = kSecond;
        int64_t left = 50 * cost;

        client.limit.cost = cost;

        for (int i = 0; i < 50; i++) {
            client.ask(++now);
        }

        /* in the middle, in front, at the end, and all that are left */
        for (size_t i : {20, 21, 19, 0, 1, 49, 48, 2}) {
            client.take_back(i);
            left -= cost;
            assert_int_equal(client.used(++now), left);

            /* once is enough */
            client.take_back(i);
            assert_int_equal(client.used(++now), left);
        }

        for (size_t i = 0; i < 50; i++) {
            client.take_back(i);
        }

        assert_int_equal(client.used(++now), 0);
        assert_int_equal(t.table.stats().free_cells, t.table.stats().cells - 1);
    }
}

void what_has_left_the_window_cannot_be_taken_back(void **)
{
    Table t;
    Client client(t, limit_of("client", 1000));
    constexpr int64_t kHour = 3600 * kSecond;

    for (int64_t i = 1; i <= 40; i++) {
        client.ask(i * kSecond);
    }

    /* half of them have */
    assert_int_equal(client.used(kHour + 20 * kSecond), 20);

    for (size_t i = 0; i < 20; i++) {
        client.take_back(i);
        assert_int_equal(client.used(kHour + 20 * kSecond), 20);
    }

    /* all have: their cells lie there as they were, and one is used again */
    client.ask(2 * kHour);

    for (size_t i = 0; i < 40; i++) {
        client.take_back(i);
        assert_int_equal(client.used(2 * kHour), 1);
    }

    client.take_back(40);
    assert_int_equal(client.used(2 * kHour), 0);
}

void who_was_forgotten_and_comes_again_is_taken_nothing_back_from(void **)
{
    Table t;
    Client client(t, limit_of("client", 1000));
    LimitState state;
    int64_t now = kSecond;

    for (int i = 0; i < 40; i++) {
        client.ask(++now);
    }

    for (int i = 0; t.table.stats().evictions == 0; i++) {
        std::string greedy = "greedy" + std::to_string(i);

        for (int k = 0; k < 20; k++) {
            assert_true(t.ask(limit_of(greedy, 1000), ++now, &state));
        }
    }

    while (client.used(++now) > 0) {
        std::string other = "other" + std::to_string(now);

        for (int k = 0; k < 50; k++) {
            assert_true(t.ask(limit_of(other, 1000), ++now, &state));
        }
    }

    client.ask(++now);
    client.ask(++now);

    for (size_t i = 0; i < 40; i++) {
        client.take_back(i);
        assert_int_equal(client.used(++now), 2);
    }

    client.take_back(40);
    assert_int_equal(client.used(++now), 1);
}

void a_place_that_never_was_is_not_looked_at(void **)
{
    Table t;
    Client client(t, limit_of("client", 1000));

    for (int64_t i = 1; i <= 10; i++) {
        client.ask(i * kSecond);
    }

    Client::Counted &first = client.counted[0];

    for (uint64_t place :
         {uint64_t{0}, uint64_t{1}, first.state.place + 1,
          first.state.place + 7, first.state.place + 255,
          first.state.place + 256, uint64_t{1} << 40, UINT64_MAX})
    {
        LimitState elsewhere = first.state;

        elsewhere.place = place;
        t.take_back(client.limit, elsewhere, first.time);
        assert_int_equal(client.used(11 * kSecond), 10);
    }

    /* another time, and another client */
    t.take_back(client.limit, first.state, first.time + 1);
    t.take_back(limit_of("other", 1000), first.state, first.time);
    assert_int_equal(client.used(11 * kSecond), 10);

    client.take_back(0);
    assert_int_equal(client.used(11 * kSecond), 9);
}

void one_request_is_taken_back_from_each_limit_by_itself(void **)
{
    Table t;
    LimitQuery limits[] = {limit_of("client", 9), limit_of("client", 9),
                           limit_of("client", 9, 6)};
    LimitState states[3];
    LimitState state;
    int64_t time;

    limits[1].zone = "other";

    for (int64_t i = 1; i <= 3; i++) {
        assert_true(t.table.ask(limits, 3, i, states, &time) == Decided::kYes);
    }

    for (int i = 0; i < 3; i++) {
        LimitQuery look = limits[i];

        t.take_back(limits[i], states[i], time);
        look.cost = 0;
        assert_true(t.ask(look, 4, &state));
        assert_int_equal(state.used, 2);
    }

    for (int i = 0; i < 2; i++) {
        LimitQuery look = limits[i];

        /* that of the other limit has the same time */
        t.take_back(limits[i], states[1 - i], time);
        look.cost = 0;
        assert_true(t.ask(look, 5, &state));
        assert_int_equal(state.used, 2);
    }
}

void what_was_taken_back_takes_no_memory(void **)
{
    for (unsigned buckets : {0, 6}) {
        Table t;
        Client client(t, limit_of("client", 1000, buckets));
        int64_t now = kSecond;

        /* one stays, and twenty are under way at any time */
        for (int i = 0; i < 21; i++) {
            client.ask(++now);
        }

        for (size_t i = 1; i < 20000; i++) {
            client.take_back(i);
            client.ask(++now);
        }

        /* each has a block of its own at most */
        assert_true(t.table.stats().free_cells
                    >= t.table.stats().cells - 1 - 21);
        assert_int_equal(t.table.stats().evictions, 0);
        assert_int_equal(client.used(++now), 21);
    }
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(what_is_taken_back_counts_no_more_wherever_it_stands),
        cmocka_unit_test(what_has_left_the_window_cannot_be_taken_back),
        cmocka_unit_test(
            who_was_forgotten_and_comes_again_is_taken_nothing_back_from),
        cmocka_unit_test(a_place_that_never_was_is_not_looked_at),
        cmocka_unit_test(one_request_is_taken_back_from_each_limit_by_itself),
        cmocka_unit_test(what_was_taken_back_takes_no_memory),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
