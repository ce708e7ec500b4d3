/* Places of breakers: the same for the same server, and not lost with it. */

#include "redis/pure/sl_shared_breakers.h"

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "unit.h"

namespace {

using sl::Breaker;
using sl::BreakerState;
using sl::SharedBreakers;

constexpr int64_t kStart = 1000000;
constexpr int64_t kIdle = SharedBreakers::kIdleMs;

std::string server(size_t number)
{
    return "cluster at 10.0.0.1:" + std::to_string(number);
}

/* All places are taken at `now`. */
void fill(SharedBreakers *breakers, int64_t now)
{
    for (size_t i = 0; i < SharedBreakers::kPlaces; i++) {
        assert_non_null(breakers->of(server(i), now));
    }
}

void each_server_has_a_place_of_its_own(void **)
{
    auto breakers = std::make_unique<SharedBreakers>();
    std::set<BreakerState *> places;

    for (size_t i = 0; i < SharedBreakers::kPlaces; i++) {
        places.insert(breakers->of(server(i), kStart));
    }

    assert_int_equal(places.size(), SharedBreakers::kPlaces);

    for (size_t i = 0; i < SharedBreakers::kPlaces; i++) {
        assert_int_equal(places.count(breakers->of(server(i), kStart)), 1);
    }

    assert_ptr_equal(breakers->of(server(7), kStart),
                     breakers->of(server(7), kStart + kIdle / 2));
}

/* Whichever it is. */
void the_last_place_is_anybody_s(void **)
{
    auto breakers = std::make_unique<SharedBreakers>();
    int64_t now = kStart;

    for (int n = 0; n < 1000; n++, now += 2 * kIdle) {
        for (size_t i = 1; i < SharedBreakers::kPlaces; i++) {
            assert_non_null(breakers->of(server(i), now));
        }

        assert_non_null(breakers->of("last " + std::to_string(n), now));
    }
}

void one_too_many_has_none(void **)
{
    auto breakers = std::make_unique<SharedBreakers>();

    fill(breakers.get(), kStart);
    assert_null(breakers->of("one more", kStart));
    assert_null(breakers->of("one more", kStart + kIdle - 1000));
}

void a_place_that_nobody_asks_for_is_given_to_another(void **)
{
    auto breakers = std::make_unique<SharedBreakers>();

    fill(breakers.get(), kStart);

    BreakerState *left = breakers->of(server(5), kStart);

    for (size_t i = 0; i < SharedBreakers::kPlaces; i++) {
        if (i != 5) {
            breakers->of(server(i), kStart + kIdle / 2);
        }
    }

    assert_ptr_equal(breakers->of("one more", kStart + kIdle), left);
    assert_null(breakers->of(server(5), kStart + kIdle));
}

void the_one_that_was_idle_for_longest_goes_first(void **)
{
    auto breakers = std::make_unique<SharedBreakers>();
    BreakerState *idlest = breakers->of(server(0), kStart);

    for (size_t i = 1; i < SharedBreakers::kPlaces; i++) {
        breakers->of(server(i), kStart + static_cast<int64_t>(i) * 1000);
    }

    assert_ptr_equal(breakers->of("one more", kStart + 2 * kIdle), idlest);
}

/* Each worker has a clock that may be a moment behind those of others. */
void a_clock_that_is_behind_takes_nobody_s_place(void **)
{
    for (size_t i = 0; i < 1000; i++) {
        auto breakers = std::make_unique<SharedBreakers>();
        BreakerState *first = breakers->of(server(i), kStart);

        assert_ptr_not_equal(breakers->of(server(i + 1), kStart - 1), first);
        assert_ptr_equal(breakers->of(server(i), kStart), first);
    }

    auto breakers = std::make_unique<SharedBreakers>();

    fill(breakers.get(), kStart);
    assert_null(breakers->of("one more", kStart - 1));
    assert_null(breakers->of("one more", kStart - 10000));
    assert_non_null(breakers->of(server(0), kStart - 1));
}

void who_has_lost_a_place_is_told_of_another(void **)
{
    auto breakers = std::make_unique<SharedBreakers>();
    int64_t late = kStart + kIdle;
    Breaker breaker(*breakers->of(server(0), kStart));

    /* the worker is held up while many other servers come, and one takes it */
    for (size_t i = 0; i < SharedBreakers::kPlaces - 1; i++) {
        assert_non_null(breakers->of("of others " + server(i), late));
    }

    BreakerState *again = breakers->of(server(0), late);

    assert_non_null(again);
    breaker.move_to(*again);
    assert_false(breaker.move_to(*again));
    assert_true(breaker.failed_for_all(late, 0, 0));
    assert_int_equal(breakers->open_count(), 1);
    assert_int_not_equal(again->next_probe.load(), 0);
}

void what_was_known_of_the_other_is_forgotten(void **)
{
    auto breakers = std::make_unique<SharedBreakers>();

    fill(breakers.get(), kStart);

    for (size_t i = 0; i < SharedBreakers::kPlaces; i++) {
        Breaker breaker(*breakers->of(server(i), kStart));

        breaker.set_connected(100, true);
        assert_true(breaker.failed_for_all(kStart, 0, 0));
        assert_true(breaker.is_news(3));
    }

    assert_int_equal(breakers->open_count(), SharedBreakers::kPlaces);

    Breaker breaker(*breakers->of("one more", kStart + kIdle));

    assert_false(breaker.is_open());
    assert_false(breaker.is_connected_elsewhere(0));
    assert_true(breaker.is_news(3));
    assert_int_equal(breakers->open_count(), SharedBreakers::kPlaces - 1);
}

void servers_can_come_and_go_for_ever(void **)
{
    auto breakers = std::make_unique<SharedBreakers>();
    int64_t now = kStart;

    for (size_t i = 0; i < 10 * SharedBreakers::kPlaces; i++) {
        assert_non_null(breakers->of(server(i), now));
        assert_non_null(breakers->of("one that stays", now));
        now += kIdle / 20;
    }
}

/* What lies behind the places, here more of them, is nobody's. */
void each_server_that_is_down_is_told_of_once(void **)
{
    auto all = std::make_unique<SharedBreakers[]>(2);
    SharedBreakers &breakers = all[0];
    std::set<std::string> told;
    size_t place = 0;
    sl::Outage outage;

    assert_false(breakers.next_outage(&place, kStart, &outage));

    for (size_t i = 0; i < SharedBreakers::kPlaces; i++) {
        for (SharedBreakers *places : {&all[0], &all[1]}) {
            Breaker breaker(*places->of(server(i), kStart));

            assert_true(breaker.failed_for_all(kStart, 0, 0));
            breaker.explain(server(i), "it burns");
        }
    }

    place = 0;
    while (breakers.next_outage(&place, kStart + 5, &outage)) {
        told.emplace(outage.server());
        assert_true(outage.reason() == "it burns");
        assert_int_equal(outage.for_ms, 5);
        assert_true(place <= SharedBreakers::kPlaces);
    }

    assert_int_equal(told.size(), SharedBreakers::kPlaces);
}

void workers_agree_on_places(void **)
{
    constexpr size_t kWorkers = 4;
    constexpr size_t kServers = 32;

    for (int round = 0; round < 50; round++) {
        auto breakers = std::make_unique<SharedBreakers>();
        BreakerState *found[kWorkers][kServers];
        std::vector<std::thread> workers;

        /* places that others had before */
        fill(breakers.get(), kStart);

        for (size_t w = 0; w < kWorkers; w++) {
            workers.emplace_back([&breakers, &found, w] {
                for (size_t i = 0; i < kServers; i++) {
                    found[w][i] =
                        breakers->of(server(1000 + i), kStart + 2 * kIdle);
                }
            });
        }

        for (std::thread &worker : workers) {
            worker.join();
        }

        for (size_t i = 0; i < kServers; i++) {
            assert_non_null(found[0][i]);

            for (size_t w = 1; w < kWorkers; w++) {
                assert_ptr_equal(found[w][i], found[0][i]);
            }
        }
    }
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(each_server_has_a_place_of_its_own),
        cmocka_unit_test(the_last_place_is_anybody_s),
        cmocka_unit_test(one_too_many_has_none),
        cmocka_unit_test(a_place_that_nobody_asks_for_is_given_to_another),
        cmocka_unit_test(the_one_that_was_idle_for_longest_goes_first),
        cmocka_unit_test(a_clock_that_is_behind_takes_nobody_s_place),
        cmocka_unit_test(who_has_lost_a_place_is_told_of_another),
        cmocka_unit_test(what_was_known_of_the_other_is_forgotten),
        cmocka_unit_test(servers_can_come_and_go_for_ever),
        cmocka_unit_test(each_server_that_is_down_is_told_of_once),
        cmocka_unit_test(workers_agree_on_places),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
