/* What workers count together: places, counters, and which workers live. */

#include "metrics/pure/sl_metrics.h"

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "child.h"

namespace {

using sl::Metrics;
using sl::Persistent;
using sl::WorkerMetrics;
using sl::ZoneEvent;
using sl::ZoneMetrics;
using sl::ZoneResult;

constexpr int64_t kNow = 1700000000000;
constexpr int64_t kWindow = 10000;

struct Shared {
    SharedMemory memory;
    Metrics *metrics;

    Shared(size_t zones, size_t stores)
        : memory(Metrics::size_for(zones, stores))
    {
        uint8_t secret[sl::kSipHashKeySize] = {1, 2, 3};

        metrics = Metrics::format(memory.get(), zones, stores, secret, 4711);
    }
};

ZoneEvent event(ZoneResult result, std::string_view key)
{
    return ZoneEvent{result, sl::kFoundNothing, false, false, false, key};
}

uint64_t count(const ZoneMetrics &zone, ZoneResult result)
{
    return zone.results[static_cast<size_t>(result)].load();
}

void places_go_by_name(void **)
{
    Shared shared(2, 1);
    ZoneMetrics *a = shared.metrics->zone("a");
    ZoneMetrics *b = shared.metrics->zone("b");

    assert_non_null(a);
    assert_non_null(b);
    assert_ptr_not_equal(a, b);
    assert_ptr_equal(shared.metrics->zone("a"), a);
    assert_null(shared.metrics->zone("c"));
    assert_non_null(shared.metrics->store("a"));
    assert_null(shared.metrics->store("b"));
    assert_int_equal(shared.metrics->since_s(), 4711);
}

void a_zone_takes_what_the_documentation_says(void **)
{
    size_t one = Metrics::size_for(2, 1) - Metrics::size_for(1, 1);

    assert_true(one < 64 * 1024);
}

void every_result_has_its_counter(void **)
{
    Shared shared(1, 1);
    ZoneMetrics &zone = *shared.metrics->zone("a");
    Persistent persistent;

    for (size_t i = 0; i < sl::kZoneResults; i++) {
        for (size_t n = 0; n <= i; n++) {
            zone.record(event(static_cast<ZoneResult>(i), "key"), 77, kNow,
                        kWindow, &persistent);
        }
    }

    for (size_t i = 0; i < sl::kZoneResults; i++) {
        assert_int_equal(zone.results[i].load(), i + 1);
    }

    sl::Tally tally = zone.tally();

    assert_int_equal(tally.passed,
                     count(zone, ZoneResult::kPassed)
                         + count(zone, ZoneResult::kRejectedDryRun));
    assert_int_equal(tally.rejected, count(zone, ZoneResult::kRejected)
                                         + count(zone, ZoneResult::kBanned));
    assert_int_equal(tally.failed,
                     count(zone, ZoneResult::kFailedOpen)
                         + count(zone, ZoneResult::kFailedClosed));
}

void what_requests_find_used_is_counted_one_by_one(void **)
{
    Shared shared(1, 1);
    ZoneMetrics &zone = *shared.metrics->zone("a");
    Persistent persistent;
    ZoneEvent found = event(ZoneResult::kPassed, "key");

    for (found.found = 0; found.found <= sl::kFoundNothing; found.found++) {
        for (size_t n = 0; n <= found.found; n++) {
            zone.record(found, 77, kNow, kWindow, &persistent);
        }
    }

    for (size_t i = 0; i < sl::kFoundUsed; i++) {
        assert_int_equal(zone.found_used[i].load(), i + 1);
    }

    assert_int_equal(zone.near_limit.load(), 0);
}

void what_requests_cost_after_all_is_counted_beside_the_rest(void **)
{
    Shared shared(2, 1);
    ZoneMetrics &zone = *shared.metrics->zone("a");

    zone.record({100, 30, true});
    zone.record({100, 100, false});

    assert_int_equal(zone.settlements.reserved.load(), 200);
    assert_int_equal(zone.settlements.given_back.load(), 70);
    assert_int_equal(zone.settlements.sum(), 130);
    assert_true(zone.tally().is_empty());
    assert_false(shared.metrics->zone("b")->settlements.are_any());
}

void exempt_requests_are_nobodys(void **)
{
    Shared shared(1, 1);
    ZoneMetrics &zone = *shared.metrics->zone("a");
    Persistent persistent;
    ZoneMetrics::Top clients;
    ZoneMetrics::Top rejected;

    zone.record(event(ZoneResult::kExempt, ""), 77, kNow, kWindow, &persistent);
    zone.read_top(kNow, kWindow, &clients, &rejected);
    assert_int_equal(clients.count, 0);
}

void only_who_is_refused_is_in_that_list(void **)
{
    Shared shared(1, 1);
    ZoneMetrics &zone = *shared.metrics->zone("a");
    Persistent persistent;
    ZoneMetrics::Top clients;
    ZoneMetrics::Top rejected;

    zone.record(event(ZoneResult::kPassed, "good"), 1, kNow, kWindow,
                &persistent);
    zone.record(event(ZoneResult::kRejected, "bad"), 2, kNow, kWindow,
                &persistent);
    zone.read_top(kNow, kWindow, &clients, &rejected);

    assert_int_equal(clients.count, 2);
    assert_int_equal(rejected.count, 1);
    assert_text_equal(rejected.clients[0].text(), "bad");
}

void who_is_banned_is_in_that_list_too(void **)
{
    Shared shared(1, 1);
    ZoneMetrics &zone = *shared.metrics->zone("a");
    Persistent persistent;
    ZoneMetrics::Top clients;
    ZoneMetrics::Top rejected;

    zone.record(event(ZoneResult::kBanned, "banned"), 1, kNow, kWindow,
                &persistent);
    zone.read_top(kNow, kWindow, &clients, &rejected);

    assert_int_equal(rejected.count, 1);
    assert_text_equal(rejected.clients[0].text(), "banned");
    assert_int_equal(zone.minutes.clients_at(kNow / 1000).rejected, 1);
}

/* Who is banned need not be over its limit. */
void a_ban_is_no_persistence(void **)
{
    Shared shared(1, 1);
    ZoneMetrics &zone = *shared.metrics->zone("a");

    for (int window = 0; window < 13; window++) {
        Persistent persistent;

        zone.record(event(ZoneResult::kBanned, "banned"), 1,
                    kNow + window * kWindow, kWindow, &persistent);
        assert_int_equal(persistent.windows, 0);
    }
}

/* Of one client the log hears after 3, 6, 12... windows, and of all of them at
 * most every ten seconds. */
void persistent_clients_are_reported(void **)
{
    Shared shared(1, 1);
    ZoneMetrics &zone = *shared.metrics->zone("a");
    std::string reported;

    for (int window = 0; window < 13; window++) {
        for (int client = 1; client <= 2; client++) {
            Persistent persistent;

            zone.record(event(ZoneResult::kRejected, "someone"),
                        static_cast<uint64_t>(client), kNow + window * kWindow,
                        kWindow, &persistent);

            if (persistent.windows != 0) {
                reported += std::to_string(client) + ":"
                            + std::to_string(persistent.windows) + " ";
            }
        }
    }

    /* the second one has to wait each time, and then says how long it was */
    assert_text_equal(reported, "1:3 2:4 1:6 2:8 1:12 ");
}

void durations_find_their_bucket(void **)
{
    sl::Durations durations{};

    for (int64_t us : {-1, 0, 5, 6, 1000000, 1000001}) {
        durations.add(us);
    }

    assert_int_equal(durations.in_bucket(0), 3);
    assert_int_equal(durations.in_bucket(1), 1);
    assert_int_equal(durations.in_bucket(sl::Durations::kBuckets - 1), 1);
    assert_int_equal(durations.in_bucket(sl::Durations::kBuckets), 1);
    assert_int_equal(durations.sum_us(), 2000012);
}

void workers_come_and_go(void **)
{
    Shared shared(1, 1);
    Metrics &metrics = *shared.metrics;
    WorkerMetrics *me = metrics.enter();

    me->checks_in_flight = 5;
    assert_int_equal(metrics.checks_in_flight(), 5);

    {
        Child other([&] { metrics.enter()->checks_in_flight = 100; });

        assert_int_equal(metrics.checks_in_flight(), 105);
        other.stop();
        assert_int_equal(metrics.checks_in_flight(), 105);
    }

    assert_int_equal(metrics.checks_in_flight(), 5);
    me->leave();
    assert_int_equal(metrics.checks_in_flight(), 0);
}

void the_place_of_a_dead_worker_is_free_again(void **)
{
    Shared shared(1, 1);
    Metrics &metrics = *shared.metrics;
    WorkerMetrics *me = metrics.enter();
    Child first([&] { metrics.enter()->checks_in_flight = 100; });
    Child second([&] { metrics.enter()->checks_in_flight = 1000; });

    first.die();

    WorkerMetrics *again = metrics.enter();

    assert_ptr_equal(again, me + 1);
    assert_int_equal(again->checks_in_flight.load(), 0);
    assert_int_equal(metrics.checks_in_flight(), 1000);
    again->leave();
    me->leave();
}

void a_dead_worker_whose_number_is_in_use_is_dead(void **)
{
    Shared shared(1, 1);
    Metrics &metrics = *shared.metrics;
    WorkerMetrics *me = metrics.enter();

    for (bool is_looked_at : {false, true}) {
        Child other([&] { metrics.enter()->checks_in_flight = 100; });

        assert_int_equal(metrics.checks_in_flight(), 100);
        other.die_with_number_in_use();

        if (is_looked_at) {
            assert_int_equal(metrics.checks_in_flight(), 0);
        }

        WorkerMetrics *again = metrics.enter();

        assert_ptr_equal(again, me + 1);
        assert_int_equal(metrics.checks_in_flight(), 0);
        again->leave();
    }

    me->leave();
}

/* As a process without a master does. */
void who_has_left_may_enter_again(void **)
{
    Shared shared(1, 1);
    Metrics &metrics = *shared.metrics;
    WorkerMetrics *first = metrics.enter();

    for (int i = 0; i < 3; i++) {
        first->checks_in_flight = 7;
        first->leave();
        assert_int_equal(metrics.checks_in_flight(), 0);
        assert_ptr_equal(metrics.enter(), first);
    }

    first->leave();
}

void there_are_places_for_all_workers_of_an_nginx(void **)
{
    Shared shared(1, 1);
    Metrics &metrics = *shared.metrics;
    std::vector<WorkerMetrics *> workers;

    while (WorkerMetrics *worker = metrics.enter()) {
        worker->checks_in_flight = 2;
        workers.push_back(worker);
    }

    assert_int_equal(workers.size(), 1024);
    assert_int_equal(metrics.checks_in_flight(), 2048);

    /* one that finds no place is not counted, and does no harm */
    Child late([&] {
        if (metrics.enter() != nullptr) {
            _exit(1);
        }
    });

    assert_int_equal(metrics.checks_in_flight(), 2048);

    for (WorkerMetrics *worker : workers) {
        worker->leave();
    }

    assert_int_equal(metrics.checks_in_flight(), 0);
}

void threads_lose_nothing(void **)
{
    Shared shared(1, 1);
    ZoneMetrics &zone = *shared.metrics->zone("a");
    std::vector<std::thread> threads;

    for (int t = 0; t < 4; t++) {
        threads.emplace_back([&zone] {
            for (uint64_t i = 0; i < 5000; i++) {
                Persistent persistent;
                std::string key = std::to_string(i % 50);

                zone.record(event(ZoneResult::kPassed, key), i % 50 + 1,
                            kNow + static_cast<int64_t>(i), kWindow,
                            &persistent);
            }
        });
    }

    for (std::thread &thread : threads) {
        thread.join();
    }

    ZoneMetrics::Top clients;
    ZoneMetrics::Top rejected;
    zone.read_top(kNow + 5000, kWindow, &clients, &rejected);

    assert_int_equal(count(zone, ZoneResult::kPassed), 20000);
    assert_int_equal(clients.count, 20);

    for (size_t i = 0; i < clients.count; i++) {
        assert_int_equal(clients.clients[i].count, 400);
    }
}

void hashes_depend_on_the_secret(void **)
{
    Shared shared(1, 1);
    Shared other(1, 1);
    uint8_t secret[sl::kSipHashKeySize] = {9};

    Metrics::format(other.memory.get(), 1, 1, secret, 0);

    assert_int_equal(shared.metrics->hash_of("key"),
                     shared.metrics->hash_of("key"));
    assert_int_not_equal(shared.metrics->hash_of("key"),
                         other.metrics->hash_of("key"));
}

/* The first place begins with its name, and that ends with its size. */
void a_name_is_no_longer_than_there_is_room_for_it(void **)
{
    Shared shared(2, 1);
    uint32_t nonsense = UINT32_MAX;

    assert_non_null(shared.metrics->zone("a"));
    memcpy(static_cast<char *>(shared.memory.get()) + Metrics::size_for(0, 0)
               + sl::kMaxZoneName,
           &nonsense, sizeof(nonsense));

    ZoneMetrics *zone = shared.metrics->zone("b");

    assert_non_null(zone);
    assert_ptr_equal(shared.metrics->zone("b"), zone);
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(places_go_by_name),
        cmocka_unit_test(a_zone_takes_what_the_documentation_says),
        cmocka_unit_test(every_result_has_its_counter),
        cmocka_unit_test(what_requests_find_used_is_counted_one_by_one),
        cmocka_unit_test(
            what_requests_cost_after_all_is_counted_beside_the_rest),
        cmocka_unit_test(exempt_requests_are_nobodys),
        cmocka_unit_test(only_who_is_refused_is_in_that_list),
        cmocka_unit_test(who_is_banned_is_in_that_list_too),
        cmocka_unit_test(a_ban_is_no_persistence),
        cmocka_unit_test(persistent_clients_are_reported),
        cmocka_unit_test(durations_find_their_bucket),
        cmocka_unit_test(workers_come_and_go),
        cmocka_unit_test(the_place_of_a_dead_worker_is_free_again),
        cmocka_unit_test(a_dead_worker_whose_number_is_in_use_is_dead),
        cmocka_unit_test(who_has_left_may_enter_again),
        cmocka_unit_test(there_are_places_for_all_workers_of_an_nginx),
        cmocka_unit_test(threads_lose_nothing),
        cmocka_unit_test(hashes_depend_on_the_secret),
        cmocka_unit_test(a_name_is_no_longer_than_there_is_room_for_it),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
