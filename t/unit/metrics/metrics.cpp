/* What workers count together: places, counters, locks that outlive nobody. */

#include "metrics/pure/sl_metrics.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "unit.h"

namespace {

using sl::Metrics;
using sl::Persistent;
using sl::StoreMetrics;
using sl::ZoneEvent;
using sl::ZoneMetrics;
using sl::ZoneResult;

constexpr int64_t kNow = 1700000000000;
constexpr int64_t kWindow = 10000;

/* Metrics in memory as shared memory is: zero, and aligned. */
struct Shared {
    void *memory;
    Metrics *metrics;

    Shared(size_t zones, size_t stores)
    {
        size_t size = (Metrics::size_for(zones, stores) + 63) / 64 * 64;
        uint8_t secret[sl::kSipHashKeySize] = {1, 2, 3};

        memory = aligned_alloc(64, size);
        memset(memory, 0, size);
        metrics = Metrics::format(memory, zones, stores, secret, 4711);
    }

    ~Shared() { free(memory); }

    Shared(const Shared &) = delete;
    Shared &operator=(const Shared &) = delete;
};

ZoneEvent event(ZoneResult result, std::string_view key)
{
    return ZoneEvent{result, false, false, false, key};
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

void a_zone_takes_what_the_readme_says(void **)
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
    assert_int_equal(tally.rejected, count(zone, ZoneResult::kRejected));
    assert_int_equal(tally.failed,
                     count(zone, ZoneResult::kFailedOpen)
                         + count(zone, ZoneResult::kFailedClosed));
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
    sl::WorkerMetrics *me = metrics.enter(getpid());

    me->checks_in_flight = 5;
    assert_int_equal(metrics.checks_in_flight(), 5);

    /* one that was killed counts no more, and its place is free again */
    pid_t child = fork();

    if (child == 0) {
        _exit(0);
    }

    sl::WorkerMetrics *dead = metrics.enter(child);
    dead->checks_in_flight = 100;
    assert_ptr_not_equal(dead, me);
    waitpid(child, nullptr, 0);
    assert_int_equal(metrics.checks_in_flight(), 5);
    assert_ptr_equal(metrics.enter(getppid()), dead);
    assert_int_equal(dead->checks_in_flight.load(), 0);

    Metrics::leave(me);
    assert_int_equal(metrics.checks_in_flight(), 0);
}

/* A lock in memory that a child shares. */
struct SharedLock {
    sl::ProcessLock *lock;

    SharedLock()
        : lock(static_cast<sl::ProcessLock *>(
            mmap(nullptr, sizeof(sl::ProcessLock), PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0)))
    {
        lock->init();
    }

    ~SharedLock() { munmap(lock, sizeof(sl::ProcessLock)); }

    SharedLock(const SharedLock &) = delete;
    SharedLock &operator=(const SharedLock &) = delete;

    /* A child that holds it, and does not let go while it lives. */
    pid_t held_by_child() const
    {
        int is_held[2];
        char byte;

        assert_int_equal(pipe(is_held), 0);

        pid_t child = fork();

        if (child == 0) {
            bool is_locked = lock->lock();
            is_locked = write(is_held[1], "", 1) == 1 && is_locked;
            pause();
            _exit(is_locked ? 0 : 1);
        }

        assert_int_equal(read(is_held[0], &byte, 1), 1);
        close(is_held[0]);
        close(is_held[1]);

        return child;
    }
};

void a_lock_is_held_by_the_living(void **)
{
    SharedLock shared;
    pid_t child = shared.held_by_child();

    /* and nobody waits for them forever */
    assert_false(shared.lock->lock());
    kill(child, SIGSTOP);
    assert_false(shared.lock->lock());
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);

    assert_true(shared.lock->lock());
    shared.lock->unlock();
    assert_true(shared.lock->lock());
    shared.lock->unlock();
}

/* Nobody has waited for it, so there is a process of this number, which is not
 * the one that took the lock: as if the number had been given to another. */
void a_lock_is_not_held_by_the_dead_whose_number_is_in_use(void **)
{
    SharedLock shared;
    pid_t child = shared.held_by_child();
    siginfo_t end;

    kill(child, SIGKILL);
    waitid(P_PID, static_cast<id_t>(child), &end, WEXITED | WNOWAIT);
    assert_int_equal(kill(child, 0), 0);

    assert_true(shared.lock->lock());
    shared.lock->unlock();
    assert_true(shared.lock->lock());
    shared.lock->unlock();
    waitpid(child, nullptr, 0);
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

    Metrics::format(other.memory, 1, 1, secret, 0);

    assert_int_equal(shared.metrics->hash_of("key"),
                     shared.metrics->hash_of("key"));
    assert_int_not_equal(shared.metrics->hash_of("key"),
                         other.metrics->hash_of("key"));
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(places_go_by_name),
        cmocka_unit_test(a_zone_takes_what_the_readme_says),
        cmocka_unit_test(every_result_has_its_counter),
        cmocka_unit_test(exempt_requests_are_nobodys),
        cmocka_unit_test(only_who_is_refused_is_in_that_list),
        cmocka_unit_test(persistent_clients_are_reported),
        cmocka_unit_test(durations_find_their_bucket),
        cmocka_unit_test(workers_come_and_go),
        cmocka_unit_test(a_lock_is_held_by_the_living),
        cmocka_unit_test(a_lock_is_not_held_by_the_dead_whose_number_is_in_use),
        cmocka_unit_test(threads_lose_nothing),
        cmocka_unit_test(hashes_depend_on_the_secret),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
