/* What happened in each minute and hour, read back. */

#include "metrics/pure/sl_history.h"

#include <memory>
#include <thread>
#include <vector>

#include "unit.h"

namespace {

using sl::HourHistory;
using sl::MinuteHistory;
using sl::Period;
using sl::Tally;

constexpr uint64_t kStart = 1700000040; /* a full minute */

/* A zone that counts, and its history. */
struct Zone {
    std::unique_ptr<MinuteHistory> minutes{new MinuteHistory()};
    Tally tally{};
    Period periods[MinuteHistory::kLength];
    size_t count = 0;

    void pass(uint64_t now, uint64_t client = 1)
    {
        minutes->enter(now, [this] { return tally; });
        tally.passed++;
        minutes->add_client(client << 53, false);
    }

    void reject(uint64_t now, uint64_t client = 1)
    {
        minutes->enter(now, [this] { return tally; });
        tally.rejected++;
        minutes->add_client(client << 53, true);
    }

    void read(uint64_t now) { count = minutes->read(now, tally, periods); }
};

void nothing_happened(void **)
{
    Zone zone;

    zone.read(kStart);
    assert_int_equal(zone.count, 0);
}

void each_minute_has_its_own(void **)
{
    Zone zone;

    zone.pass(kStart, 1);
    zone.pass(kStart + 59, 2);
    zone.reject(kStart + 59, 2);
    zone.reject(kStart + 60, 3);

    /* the one that runs is there, too */
    zone.read(kStart + 61);
    assert_int_equal(zone.count, 2);
    assert_int_equal(zone.periods[0].begin_s, kStart);
    assert_int_equal(zone.periods[0].tally.passed, 2);
    assert_int_equal(zone.periods[0].tally.rejected, 1);
    assert_int_equal(zone.periods[0].clients.all, 2);
    assert_int_equal(zone.periods[0].clients.rejected, 1);
    assert_int_equal(zone.periods[1].begin_s, kStart + 60);
    assert_int_equal(zone.periods[1].tally.passed, 0);
    assert_int_equal(zone.periods[1].tally.rejected, 1);
    assert_int_equal(zone.periods[1].clients.all, 1);
    assert_int_equal(zone.periods[1].clients.rejected, 1);

    assert_int_equal(zone.minutes->clients_at(kStart + 59).all, 2);
    assert_int_equal(zone.minutes->clients_at(kStart + 60).all, 1);
    assert_int_equal(zone.minutes->clients_at(kStart + 120).all, 0);
    assert_int_equal(zone.minutes->clients_at(kStart - 1).all, 0);
}

void minutes_without_requests_are_left_out(void **)
{
    Zone zone;

    zone.pass(kStart, 1);
    zone.pass(kStart + 10 * 60, 2);
    zone.pass(kStart + 12 * 60, 3);
    zone.read(kStart + 13 * 60);

    assert_int_equal(zone.count, 3);

    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(zone.periods[i].tally.passed, 1);
        assert_int_equal(zone.periods[i].clients.all, 1);
    }

    assert_int_equal(zone.periods[1].begin_s, kStart + 10 * 60);
}

void only_the_last_six_hours_are_kept(void **)
{
    Zone zone;

    for (uint64_t minute = 0; minute < 1000; minute++) {
        zone.pass(kStart + minute * 60);
    }

    zone.read(kStart + 999 * 60);
    assert_int_equal(zone.count, 360);
    assert_int_equal(zone.periods[0].begin_s, kStart + 640 * 60);
    assert_int_equal(zone.periods[359].begin_s, kStart + 999 * 60);

    for (size_t i = 0; i < zone.count; i++) {
        assert_int_equal(zone.periods[i].tally.passed, 1);
    }

    /* and less of them as time goes by, without any requests */
    zone.read(kStart + 1009 * 60);
    assert_int_equal(zone.count, 350);
    zone.read(kStart + 5000 * 60);
    assert_int_equal(zone.count, 0);
}

void a_process_a_moment_behind_changes_nothing(void **)
{
    Zone zone;

    zone.pass(kStart + 60, 1);
    zone.pass(kStart + 59, 2);
    zone.pass(kStart + 61, 3);
    zone.read(kStart + 61);

    assert_int_equal(zone.count, 1);
    assert_int_equal(zone.periods[0].tally.passed, 3);
    assert_int_equal(zone.periods[0].clients.all, 3);
}

void a_clock_that_is_set_back_does_not_stop_it(void **)
{
    Zone zone;

    zone.pass(kStart + 6000);
    zone.pass(kStart);
    zone.pass(kStart + 1);
    zone.pass(kStart + 60);
    zone.read(kStart + 60);

    assert_int_equal(zone.count, 2);
    assert_int_equal(zone.periods[0].begin_s, kStart);
    assert_int_equal(zone.periods[0].tally.passed, 2);
    assert_int_equal(zone.periods[1].tally.passed, 1);

    /* nor is what was noted then counted again when that time comes */
    zone.pass(kStart + 6060);
    zone.read(kStart + 6060);
    assert_int_equal(zone.count, 3);
    assert_int_equal(zone.periods[2].tally.passed, 1);
}

void hours_go_back_a_week(void **)
{
    auto hours = std::make_unique<HourHistory>();
    static Period periods[HourHistory::kLength];
    Tally tally{};

    for (uint64_t hour = 0; hour < 200; hour++) {
        hours->enter(kStart + hour * 3600, [&] { return tally; });
        tally.failed += hour;
    }

    size_t count = hours->read(kStart + 199 * 3600, tally, periods);

    assert_int_equal(count, 168);
    assert_int_equal(periods[167].tally.failed, 199);
    assert_int_equal(periods[0].tally.failed, 32);
}

/* However many count at a time, and whoever notices a new minute: the minutes
 * add up to what was counted. */
void threads_lose_nothing(void **)
{
    constexpr uint64_t kRequests = 120000;

    auto minutes = std::make_unique<MinuteHistory>();
    std::atomic<uint64_t> clock{0};
    std::atomic<uint64_t> passed{0};
    std::vector<std::thread> threads;

    for (int t = 0; t < 4; t++) {
        threads.emplace_back([&] {
            for (uint64_t now = clock++; now < kRequests; now = clock++) {
                minutes->enter(kStart + now / 1000, [&] {
                    return Tally{passed.load(), 0, 0, 0};
                });
                passed++;
                minutes->add_client(now << 40, false);
            }
        });
    }

    for (std::thread &thread : threads) {
        thread.join();
    }

    static Period periods[MinuteHistory::kLength];
    uint64_t sum = 0;
    size_t count = minutes->read(kStart + 119, Tally{passed, 0, 0, 0}, periods);

    for (size_t i = 0; i < count; i++) {
        sum += periods[i].tally.passed;
    }

    assert_int_equal(passed.load(), kRequests);
    assert_int_equal(sum, kRequests);
    assert_int_equal(count, 2);
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(nothing_happened),
        cmocka_unit_test(each_minute_has_its_own),
        cmocka_unit_test(minutes_without_requests_are_left_out),
        cmocka_unit_test(only_the_last_six_hours_are_kept),
        cmocka_unit_test(a_process_a_moment_behind_changes_nothing),
        cmocka_unit_test(a_clock_that_is_set_back_does_not_stop_it),
        cmocka_unit_test(hours_go_back_a_week),
        cmocka_unit_test(threads_lose_nothing),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
