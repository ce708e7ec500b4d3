/* When a store is asked and when not: opening, probing, delays and races. */

#include "redis/pure/sl_breaker.h"

#include <atomic>
#include <chrono>
#include <initializer_list>
#include <thread>
#include <vector>

#include "unit.h"

namespace {

using sl::Breaker;
using sl::BreakerState;
using Ticket = Breaker::Ticket;

constexpr int64_t kStart = 1000000;
constexpr int64_t kSpan = 300;

/* What workers share, and one of them. */
struct Shared {
    BreakerState state{};
    Breaker breaker{state};
};

void open(Breaker breaker, int64_t now)
{
    assert_true(breaker.failed_for_all(now, 0, 0));
}

/* Whether the last of so many failures opens it. One comes each millisecond,
 * until now. */
bool opens(Breaker breaker, int64_t now, unsigned failures)
{
    for (unsigned i = failures - 1; i > 0; i--) {
        assert_false(breaker.failed(now - i, 0));
    }

    return breaker.failed(now, 0);
}

/* Waits until the server may be probed. */
Ticket wait_for_probe(Breaker breaker, int64_t *now)
{
    for (int64_t i = 0; i < 100000; i++) {
        Ticket ticket = breaker.take_probe(*now, kSpan);

        if (ticket != 0) {
            return ticket;
        }

        ++*now;
    }

    fail_msg("it may never be probed");

    return 0;
}

/* How long the server is not to be probed. */
int64_t delay_from(Breaker breaker, int64_t now)
{
    int64_t then = now;

    wait_for_probe(breaker, &then);

    return then - now;
}

/* The breaker is open: such delays come before probes that all fail, from now
 * on. */
void assert_delays(Breaker breaker, int64_t *now,
                   std::initializer_list<int64_t> expected)
{
    for (int64_t delay : expected) {
        int64_t before = *now;
        Ticket ticket = wait_for_probe(breaker, now);

        assert_int_equal(*now - before, delay);
        breaker.probe_failed(ticket, *now, 0, 0);
    }
}

/* The server is probed as soon as possible, and is there again. */
void close(Breaker breaker, int64_t *now)
{
    Ticket ticket = wait_for_probe(breaker, now);

    assert_true(breaker.probe_succeeded(ticket, *now));
}

/* ---- opening ---- */

void it_is_closed_at_first(void **)
{
    Shared s;

    assert_false(s.breaker.is_open());
    assert_int_equal(s.breaker.take_probe(kStart, kSpan), 0);
}

void five_failures_in_a_row_open_it(void **)
{
    Shared s;

    for (int64_t i = 0; i < 4; i++) {
        assert_false(s.breaker.failed(kStart + i, 0));
        assert_false(s.breaker.is_open());
    }

    assert_true(s.breaker.failed(kStart + 4, 0));
    assert_true(s.breaker.is_open());
}

void a_success_in_between_starts_the_row_anew(void **)
{
    Shared s;

    for (int64_t now = kStart; now < kStart + 100; now += 10) {
        assert_false(opens(s.breaker, now, 4));
        s.breaker.succeeded();
    }

    assert_true(opens(s.breaker, kStart + 100, 5));
}

void a_single_failure_is_forgotten_too(void **)
{
    Shared s;

    assert_false(s.breaker.failed(kStart, 0));
    s.breaker.succeeded();
    assert_false(opens(s.breaker, kStart + 10, 4));
}

void a_second_success_in_a_millisecond_does_so_too(void **)
{
    Shared s;

    s.breaker.succeeded();
    assert_false(opens(s.breaker, kStart, 4));
    s.breaker.succeeded();
    assert_false(opens(s.breaker, kStart + 4, 4));
    assert_true(s.breaker.failed(kStart + 5, 0));
}

void failures_at_the_same_time_count_as_one(void **)
{
    Shared s;

    for (int64_t i = 0; i < 4; i++) {
        for (int k = 0; k < 100; k++) {
            assert_false(s.breaker.failed(kStart + i, 0));
        }
    }

    assert_false(s.breaker.is_open());
    assert_true(s.breaker.failed(kStart + 4, 0));
}

void more_failures_do_not_open_it_twice(void **)
{
    Shared s;

    assert_true(opens(s.breaker, kStart, 5));

    for (int64_t i = 0; i < 100; i++) {
        assert_false(s.breaker.failed(kStart + i, 0));
    }

    /* nor do they put off the probe */
    assert_int_equal(delay_from(s.breaker, kStart), 100);
}

void what_concerns_all_opens_it_at_once(void **)
{
    Shared s;

    assert_true(s.breaker.failed_for_all(kStart, 0, 0));
    assert_true(s.breaker.is_open());
}

void others_may_be_connected(void **)
{
    Shared s;

    assert_false(s.breaker.is_connected_elsewhere(0));

    s.breaker.set_connected(0, true);
    assert_false(s.breaker.is_connected_elsewhere(0));
    assert_true(s.breaker.is_connected_elsewhere(1));

    s.breaker.set_connected(1, true);
    s.breaker.set_connected(1, true);
    assert_true(s.breaker.is_connected_elsewhere(0));

    s.breaker.set_connected(1, false);
    assert_false(s.breaker.is_connected_elsewhere(0));
    assert_true(s.breaker.is_connected_elsewhere(63));

    s.breaker.set_connected(0, false);
    s.breaker.set_connected(0, false);
    assert_false(s.breaker.is_connected_elsewhere(63));
}

/* There are as many workers as nginx can have. */
void a_thousand_workers_are_told_apart(void **)
{
    Shared s;

    for (uint64_t worker : {1, 63, 64, 65, 127, 128, 1023}) {
        s.breaker.set_connected(worker, true);
        assert_false(s.breaker.is_connected_elsewhere(worker));
        assert_true(s.breaker.is_connected_elsewhere(0));
        assert_true(s.breaker.is_connected_elsewhere((worker + 64) % 1024));

        /* a worker that has none leaves the others alone */
        s.breaker.set_connected((worker + 64) % 1024, false);
        assert_true(s.breaker.is_connected_elsewhere(0));

        s.breaker.set_connected(worker, false);
        assert_false(s.breaker.is_connected_elsewhere(0));
    }
}

void the_second_who_opens_it_is_told_so(void **)
{
    Shared s;

    open(s.breaker, kStart);
    assert_false(s.breaker.failed_for_all(kStart + 1, 10000, 0));
    assert_false(opens(s.breaker, kStart + 2, 5));

    /* the delay is that of the first one */
    assert_int_equal(delay_from(s.breaker, kStart), 100);
    assert_int_equal(s.breaker.open_for(kStart + 100), 100);
}

void a_success_does_not_close_it(void **)
{
    Shared s;

    open(s.breaker, kStart);
    s.breaker.succeeded();

    assert_true(s.breaker.is_open());
    assert_int_equal(delay_from(s.breaker, kStart), 100);
}

void it_is_known_for_how_long_it_has_been_open(void **)
{
    Shared s;
    int64_t now = kStart;

    open(s.breaker, kStart);
    assert_int_equal(s.breaker.open_for(kStart), 0);

    assert_delays(s.breaker, &now, {100, 200, 400});
    assert_int_equal(s.breaker.open_for(now), 700);

    close(s.breaker, &now);
    assert_int_equal(s.breaker.open_for(now), 1500);

    open(s.breaker, now + 5000);
    assert_int_equal(s.breaker.open_for(now + 5001), 1);
}

/* ---- the right to probe ---- */

void it_is_probed_when_the_time_has_come(void **)
{
    Shared s;

    open(s.breaker, kStart);

    for (int64_t i = 0; i < 100; i++) {
        assert_int_equal(s.breaker.take_probe(kStart + i, kSpan), 0);
    }

    assert_int_not_equal(s.breaker.take_probe(kStart + 100, kSpan), 0);
    assert_true(s.breaker.is_open());
}

void it_is_probed_however_late_somebody_looks(void **)
{
    Shared s;

    open(s.breaker, kStart);
    assert_int_not_equal(s.breaker.take_probe(kStart * 1000, kSpan), 0);
}

void one_at_a_time_may_probe_it(void **)
{
    Shared s;
    int64_t now = kStart;

    open(s.breaker, now);
    wait_for_probe(s.breaker, &now);

    for (int64_t i = 0; i < kSpan; i++) {
        assert_int_equal(s.breaker.take_probe(now + i, kSpan), 0);
    }
}

void whoever_dies_over_it_is_replaced(void **)
{
    Shared s;
    int64_t now = kStart;

    open(s.breaker, now);

    Ticket last = wait_for_probe(s.breaker, &now);

    for (int i = 0; i < 10; i++) {
        now += kSpan;
        assert_int_equal(s.breaker.take_probe(now - 1, kSpan), 0);

        Ticket ticket = s.breaker.take_probe(now, kSpan);

        assert_int_not_equal(ticket, 0);
        assert_int_not_equal(ticket, last);
        last = ticket;
    }

    assert_true(s.breaker.probe_succeeded(last, now));
}

void the_span_is_that_of_whoever_took_it(void **)
{
    for (int64_t span : {1, 2, 50, 5000}) {
        Shared s;
        int64_t now = kStart + 100;

        open(s.breaker, kStart);
        assert_int_not_equal(s.breaker.take_probe(now, span), 0);
        assert_int_equal(s.breaker.take_probe(now + span - 1, kSpan), 0);
        assert_int_not_equal(s.breaker.take_probe(now + span, kSpan), 0);
    }
}

void a_probe_that_comes_late_counts_if_nobody_took_over(void **)
{
    Shared s;
    int64_t now = kStart;

    open(s.breaker, now);

    Ticket ticket = wait_for_probe(s.breaker, &now);

    now += 10 * kSpan;
    s.breaker.probe_failed(ticket, now, 0, 0);
    assert_int_equal(delay_from(s.breaker, now), 200);

    now += 20 * kSpan;
    ticket = wait_for_probe(s.breaker, &now);
    now += 10 * kSpan;
    assert_true(s.breaker.probe_succeeded(ticket, now));
    assert_false(s.breaker.is_open());
}

void a_failure_of_one_who_was_replaced_means_nothing(void **)
{
    Shared s;
    int64_t now = kStart;

    open(s.breaker, now);

    Ticket stale = wait_for_probe(s.breaker, &now);

    now += kSpan;

    Ticket ticket = wait_for_probe(s.breaker, &now);

    s.breaker.probe_failed(stale, now + 1, 10000, 0);

    /* neither the ticket nor the delays have changed */
    assert_int_equal(s.breaker.take_probe(now + kSpan - 1, kSpan), 0);
    s.breaker.probe_failed(ticket, now + 2, 0, 0);
    assert_int_equal(delay_from(s.breaker, now + 2), 200);
}

void a_success_of_one_who_was_replaced_means_nothing(void **)
{
    Shared s;
    int64_t now = kStart;

    open(s.breaker, now);
    assert_true(s.breaker.is_news(3));

    Ticket stale = wait_for_probe(s.breaker, &now);

    now += kSpan;

    Ticket ticket = wait_for_probe(s.breaker, &now);

    assert_false(s.breaker.probe_succeeded(stale, now + 1));
    assert_true(s.breaker.is_open());
    assert_false(s.breaker.is_news(3));
    assert_int_equal(s.breaker.take_probe(now + kSpan - 1, kSpan), 0);

    assert_true(s.breaker.probe_succeeded(ticket, now + 2));
    assert_false(s.breaker.is_open());
}

void a_ticket_is_good_for_one_probe(void **)
{
    Shared s;
    int64_t now = kStart;

    open(s.breaker, now);

    Ticket ticket = wait_for_probe(s.breaker, &now);

    s.breaker.probe_failed(ticket, now, 0, 0);
    s.breaker.probe_failed(ticket, now, 10000, 0);
    assert_false(s.breaker.probe_succeeded(ticket, now));
    assert_true(s.breaker.is_open());
    assert_int_equal(delay_from(s.breaker, now), 200);
}

void a_ticket_of_the_last_time_is_none_for_this_one(void **)
{
    Shared s;
    int64_t now = kStart;

    open(s.breaker, now);

    Ticket stale = wait_for_probe(s.breaker, &now);

    now += kSpan;
    close(s.breaker, &now);

    s.breaker.probe_failed(stale, now, 0, 0);
    assert_false(s.breaker.is_open());
    assert_false(s.breaker.probe_succeeded(stale, now));

    now += 5000;
    open(s.breaker, now);
    assert_false(s.breaker.probe_succeeded(stale, now));
    s.breaker.probe_failed(stale, now, 10000, 0);
    assert_int_equal(delay_from(s.breaker, now), 100);
}

/* ---- delays ---- */

void delays_double_up_to_the_ceiling_and_stay_there(void **)
{
    Shared s;
    int64_t now = kStart;

    open(s.breaker, now);
    assert_delays(s.breaker, &now,
                  {100, 200, 400, 800, 1000, 1000, 1000, 1000});
}

void failures_in_a_row_lead_to_the_same_delays(void **)
{
    Shared s;
    int64_t now = kStart;

    assert_true(opens(s.breaker, now, 5));
    assert_delays(s.breaker, &now, {100, 200, 400, 800, 1000, 1000});
}

void jitter_takes_every_value_from_half_to_the_whole(void **)
{
    for (uint32_t random = 0; random <= 50; random++) {
        Shared s;
        Shared other;

        assert_true(s.breaker.failed_for_all(kStart, 0, random));
        assert_int_equal(delay_from(s.breaker, kStart), 100 - random);

        assert_false(opens(other.breaker, kStart - 1, 4));
        assert_true(other.breaker.failed(kStart, random));
        assert_int_equal(delay_from(other.breaker, kStart), 100 - random);
    }

    /* and starts anew */
    Shared s;

    assert_true(s.breaker.failed_for_all(kStart, 0, 51));
    assert_int_equal(delay_from(s.breaker, kStart), 100);
}

void no_random_number_leads_out_of_half_to_the_whole(void **)
{
    std::vector<uint32_t> randoms = {
        0,   1,   49,  50,   51,         99,         100,        101,
        400, 401, 500, 1000, 0x7fffffff, 0x80000000, 0xfffffffe, UINT32_MAX};

    for (uint32_t i = 1; i <= 500; i++) {
        randoms.push_back(i * 2654435761U);
    }

    for (uint32_t random : randoms) {
        Shared s;
        int64_t now = kStart;

        assert_true(s.breaker.failed_for_all(now, 0, random));

        for (int64_t d : {100, 200, 400, 800, 1000, 1000}) {
            int64_t before = now;
            Ticket ticket = wait_for_probe(s.breaker, &now);

            assert_in_range(now - before, d / 2, d);
            s.breaker.probe_failed(ticket, now, 0, random);
        }
    }
}

void jitter_does_not_slow_the_growth(void **)
{
    struct Step {
        uint32_t random;
        int64_t delay;
    };

    Shared s;
    int64_t now = kStart;

    assert_true(s.breaker.failed_for_all(now, 0, 50));
    assert_int_equal(delay_from(s.breaker, now), 50);

    now += 50;

    Ticket ticket = wait_for_probe(s.breaker, &now);

    for (Step step : {Step{100, 100}, Step{200, 200}, Step{0, 800},
                      Step{500, 500}, Step{0, 1000}})
    {
        int64_t before = now;

        s.breaker.probe_failed(ticket, now, 0, step.random);
        ticket = wait_for_probe(s.breaker, &now);
        assert_int_equal(now - before, step.delay);
    }
}

void a_least_delay_is_kept_and_exceeded_by_a_tenth_at_most(void **)
{
    for (uint32_t random : {0U, 1U, 500U, 1000U}) {
        Shared s;

        assert_true(s.breaker.failed_for_all(kStart, 10000, random));
        assert_int_equal(delay_from(s.breaker, kStart), 10000 + random);
    }

    for (uint32_t i = 0; i < 500; i++) {
        Shared s;
        int64_t now = kStart;
        uint32_t random = i % 2 ? i * 2654435761U : UINT32_MAX - i;

        assert_true(s.breaker.failed_for_all(now, 10000, random));

        Ticket ticket = wait_for_probe(s.breaker, &now);

        assert_in_range(now - kStart, 10000, 11000);

        s.breaker.probe_failed(ticket, now, 10000, ~random);
        assert_in_range(delay_from(s.breaker, now), 10000, 11000);
    }
}

void a_least_delay_below_the_delay_changes_nothing(void **)
{
    for (int64_t least : {0, 1, 99, 100}) {
        Shared s;

        assert_true(s.breaker.failed_for_all(kStart, least, 0));
        assert_int_equal(delay_from(s.breaker, kStart), 100);
    }

    Shared s;

    assert_true(s.breaker.failed_for_all(kStart, 101, 0));
    assert_int_equal(delay_from(s.breaker, kStart), 101);
}

void delays_grow_behind_a_least_delay_too(void **)
{
    Shared s;
    int64_t now = kStart;

    assert_true(s.breaker.failed_for_all(now, 10000, 0));

    Ticket ticket = wait_for_probe(s.breaker, &now);

    s.breaker.probe_failed(ticket, now, 0, 0);
    assert_delays(s.breaker, &now, {200, 400, 800, 1000});
}

void who_fails_again_soon_waits_longer(void **)
{
    for (int64_t pause : {0, 1, 999}) {
        Shared s;
        int64_t now = kStart;

        open(s.breaker, now);
        assert_delays(s.breaker, &now, {100});
        close(s.breaker, &now);

        now += pause;
        open(s.breaker, now);
        assert_delays(s.breaker, &now, {400, 800});
        close(s.breaker, &now);

        now += pause;
        assert_true(opens(s.breaker, now, 5));
        assert_delays(s.breaker, &now, {1000, 1000});
    }
}

void who_was_settled_starts_anew(void **)
{
    for (int64_t pause : {1000, 1001, 1000000}) {
        Shared s;
        int64_t now = kStart;

        open(s.breaker, now);
        assert_delays(s.breaker, &now, {100, 200, 400, 800, 1000});
        close(s.breaker, &now);

        now += pause;
        open(s.breaker, now);
        assert_delays(s.breaker, &now, {100, 200, 400});
    }
}

void who_has_never_failed_starts_with_the_shortest_delay(void **)
{
    /* soon after the start of the machine, too */
    for (int64_t now : {1, 500, 1000}) {
        Shared s;

        open(s.breaker, now);
        assert_int_equal(delay_from(s.breaker, now), 100);
    }
}

/* ---- closing ---- */

void a_probe_that_succeeds_closes_it(void **)
{
    Shared s;
    int64_t now = kStart;

    open(s.breaker, now);
    close(s.breaker, &now);

    assert_false(s.breaker.is_open());
    assert_int_equal(s.breaker.take_probe(now + 100000, kSpan), 0);
}

void who_has_reason_to_hope_probes_before_it_is_time(void **)
{
    Shared shared;

    open(shared.breaker, kStart);
    assert_int_equal(shared.breaker.take_probe(kStart, kSpan), 0);

    Ticket ticket = shared.breaker.take_probe_early(kStart, kSpan);

    assert_int_not_equal(ticket, 0);
    assert_true(shared.breaker.probe_succeeded(ticket, kStart));
    assert_false(shared.breaker.is_open());
}

void what_was_probed_meanwhile_means_nothing_then(void **)
{
    Shared shared;
    int64_t now = kStart;

    open(shared.breaker, now);

    Ticket before = wait_for_probe(shared.breaker, &now);
    Ticket early = shared.breaker.take_probe_early(now + 1, kSpan);

    assert_false(shared.breaker.probe_succeeded(before, now + 2));
    assert_true(shared.breaker.is_open());
    assert_true(shared.breaker.probe_succeeded(early, now + 2));
}

void there_is_nothing_to_probe_early_while_it_is_closed(void **)
{
    Shared shared;

    assert_int_equal(shared.breaker.take_probe_early(kStart, kSpan), 0);
    assert_false(shared.breaker.is_open());
}

void a_probe_that_fails_does_not(void **)
{
    Shared s;
    int64_t now = kStart;

    open(s.breaker, now);

    for (int i = 0; i < 100; i++) {
        Ticket ticket = wait_for_probe(s.breaker, &now);

        s.breaker.probe_failed(ticket, now, 0, 0);
        assert_true(s.breaker.is_open());
    }
}

void failures_are_forgotten_when_it_closes(void **)
{
    Shared s;
    int64_t now = kStart;

    assert_true(opens(s.breaker, now, 5));

    /* failures of those who had asked before it opened */
    for (int64_t i = 1; i <= 10; i++) {
        assert_false(s.breaker.failed(now + i, 0));
    }

    close(s.breaker, &now);
    assert_true(opens(s.breaker, now, 5));
}

void another_reason_is_news_and_the_same_is_not(void **)
{
    Shared s;

    assert_true(s.breaker.is_news(1));
    assert_false(s.breaker.is_news(1));
    assert_true(s.breaker.is_news(2));
    assert_false(s.breaker.is_news(2));
    assert_true(s.breaker.is_news(1));
}

void the_same_reason_is_news_after_it_was_closed(void **)
{
    Shared s;
    int64_t now = kStart;

    open(s.breaker, now);
    assert_true(s.breaker.is_news(1));

    Ticket ticket = wait_for_probe(s.breaker, &now);

    s.breaker.probe_failed(ticket, now, 0, 0);
    assert_false(s.breaker.is_news(1));

    close(s.breaker, &now);
    open(s.breaker, now);
    assert_true(s.breaker.is_news(1));
}

/* ---- workers ---- */

void workers_see_the_same(void **)
{
    BreakerState state{};
    Breaker one(state);
    Breaker other(state);
    int64_t now = kStart;

    for (int64_t i = 4; i > 0; i -= 2) {
        assert_false(one.failed(now - i, 0));
        assert_false(other.failed(now - i, 0));
        assert_false(other.failed(now - i + 1, 0));
    }

    assert_true(one.failed(now, 0));
    assert_true(other.is_open());
    assert_int_equal(other.open_for(now + 5), 5);
    assert_true(one.is_news(1));
    assert_false(other.is_news(1));

    Ticket ticket = wait_for_probe(one, &now);

    assert_int_equal(other.take_probe(now, kSpan), 0);
    one.probe_failed(ticket, now, 0, 0);
    assert_int_equal(other.take_probe(now + 199, kSpan), 0);

    now += 200;
    ticket = other.take_probe(now, kSpan);
    assert_int_not_equal(ticket, 0);
    assert_true(other.probe_succeeded(ticket, now));
    assert_false(one.is_open());
    assert_true(one.is_news(1));
    assert_true(one.failed_for_all(now + 2, 0, 0));
    assert_true(other.is_open());
}

void stores_have_nothing_to_do_with_each_other(void **)
{
    Shared s;
    Shared other;

    open(s.breaker, kStart);
    assert_true(s.breaker.is_news(1));

    assert_false(other.breaker.is_open());
    assert_true(other.breaker.is_news(1));
}

/*
 * Calls a function in so many threads, which wait for each other before every
 * step of a round. There are fewer rounds on a busy machine; tells how many.
 */
template <typename Work>
unsigned run_in_step(unsigned threads, unsigned rounds, unsigned steps,
                     const Work &work)
{
    using Clock = std::chrono::steady_clock;

    std::vector<std::thread> running;
    std::atomic<unsigned> arrived{0};
    std::atomic<unsigned> end{rounds};
    Clock::time_point deadline = Clock::now() + std::chrono::seconds(1);

    auto run = [&](unsigned me) {
        unsigned expected = 0;

        for (unsigned round = 0; round < end; round++) {
            for (unsigned step = 0; step < steps; step++) {
                expected += threads;

                /* nobody else reads it before the next round */
                if (me == 0 && step + 1 == steps && Clock::now() > deadline) {
                    end = round + 1;
                }

                arrived++;

                /* there may be fewer processors than threads */
                for (unsigned i = 1; arrived < expected; i++) {
                    if (i % 256 == 0) {
                        std::this_thread::yield();
                    }
                }

                work(me, round, step);
            }
        }
    };

    for (unsigned me = 0; me < threads; me++) {
        running.emplace_back(run, me);
    }

    for (std::thread &thread : running) {
        thread.join();
    }

    return end;
}

void of_threads_that_fail_or_probe_together_one_wins(void **)
{
    constexpr unsigned kThreads = Breaker::kTolerated;
    constexpr unsigned kRounds = 10000;

    struct Round {
        std::atomic<unsigned> opened{0};
        std::atomic<unsigned> probed{0};
        std::atomic<unsigned> closed{0};
    };

    BreakerState state{};
    std::vector<Round> rounds(kRounds);
    Ticket tickets[kThreads] = {};

    auto work = [&](unsigned me, unsigned number, unsigned step) {
        Breaker breaker(state);
        Round &round = rounds[number];
        int64_t now = kStart + int64_t{10000} * number;

        switch (step) {
        case 0:
            round.opened += breaker.failed_for_all(now, 0, 0);
            break;

        case 1:
            tickets[me] = breaker.take_probe(now + 100, kSpan);
            round.probed += tickets[me] != 0;
            break;

        default:
            if (tickets[me] != 0) {
                round.closed += breaker.probe_succeeded(tickets[me], now + 101);
            }
        }
    };

    unsigned done = run_in_step(kThreads, kRounds, 3, work);

    for (unsigned i = 0; i < done; i++) {
        const Round &round = rounds[i];

        assert_int_equal(round.opened, 1);
        assert_int_equal(round.probed, 1);
        assert_int_equal(round.closed, 1);
    }

    assert_false(Breaker(state).is_open());
}

void one_who_comes_back_late_closes_it_or_is_replaced(void **)
{
    constexpr unsigned kRounds = 50000;
    constexpr int64_t kProbed = kStart + Breaker::kLongestDelay;

    struct Round {
        bool has_come_back;
        bool is_replaced;
        bool has_replacement_closed;
    };

    BreakerState state{};
    std::vector<Round> rounds(kRounds);
    Ticket ticket = 0;
    Ticket replacement = 0;

    auto work = [&](unsigned me, unsigned number, unsigned step) {
        Breaker breaker(state);
        Round &round = rounds[number];

        switch (step) {
        case 0:
            if (me == 0) {
                breaker.failed_for_all(kStart, 0, 0);
                ticket = breaker.take_probe(kProbed, kSpan);
            }
            break;

        case 1:
            /* now the one is earlier, now the other */
            for (volatile unsigned i = number * (me + 1) % 64; i > 0;) {
                i = i - 1;
            }

            if (me == 0) {
                round.has_come_back =
                    breaker.probe_succeeded(ticket, kProbed + kSpan);
            } else {
                replacement = breaker.take_probe(kProbed + kSpan, kSpan);
                round.is_replaced = replacement != 0;
            }
            break;

        default:
            if (me == 1 && replacement != 0) {
                round.has_replacement_closed =
                    breaker.probe_succeeded(replacement, kProbed + kSpan);
            }
        }
    };

    unsigned done = run_in_step(2, kRounds, 3, work);

    for (unsigned i = 0; i < done; i++) {
        const Round &round = rounds[i];

        assert_true(round.has_come_back != round.is_replaced);
        assert_true(round.has_replacement_closed == round.is_replaced);
    }
}

/* The threads do not wait for each other: so they meet in all places. */
void threads_that_run_freely_never_open_or_probe_it_together(void **)
{
    constexpr unsigned kThreads = 4;
    constexpr unsigned kRounds = 400000;
    constexpr int64_t kLater = kStart + Breaker::kLongestDelay;

    BreakerState state{};
    std::atomic<unsigned> opened{0};
    std::atomic<unsigned> probed{0};
    std::atomic<unsigned> closed{0};
    std::atomic<unsigned> probing{0};
    std::atomic<unsigned> met{0};

    run_in_step(kThreads, 1, 1, [&](unsigned, unsigned, unsigned) {
        Breaker breaker(state);

        for (unsigned i = 0; i < kRounds; i++) {
            opened += breaker.failed_for_all(kStart, 0, i);

            Ticket ticket = breaker.take_probe(kLater, kSpan);

            if (ticket == 0) {
                continue;
            }

            probed++;
            met += probing.fetch_add(1);
            probing--;

            if (i % 2) {
                breaker.probe_failed(ticket, kStart, 0, i);
            } else {
                closed += breaker.probe_succeeded(ticket, kLater);
            }
        }
    });

    assert_int_equal(met, 0);
    assert_int_equal(opened, closed + Breaker(state).is_open());
    assert_true(closed > 0);
    assert_true(probed > closed);
}

void failures_seen_by_clocks_that_differ_a_little_count_as_one(void **)
{
    Shared s;

    for (int i = 0; i < 10; i++) {
        assert_false(s.breaker.failed(kStart + i % 2, 0));
    }

    assert_int_equal(s.state.failures, 2);
}

void no_ticket_is_no_right(void **)
{
    Shared s;

    assert_false(s.breaker.probe_succeeded(0, kStart));
    s.breaker.probe_failed(0, kStart, 0, 0);
    assert_false(s.breaker.is_open());
}

void threads_that_fail_at_any_times_open_it_once(void **)
{
    constexpr unsigned kThreads = 4;
    constexpr unsigned kFailures = 500000;

    Shared s;
    std::atomic<unsigned> opened{0};

    run_in_step(kThreads, 1, 1, [&](unsigned me, unsigned, unsigned) {
        for (unsigned i = 0; i < kFailures; i++) {
            opened += s.breaker.failed(kStart + kThreads * i + me, i);
        }
    });

    assert_int_equal(opened, 1);
    assert_true(s.state.failures >= Breaker::kTolerated);
    assert_true(s.state.failures <= kThreads * kFailures);
}

void of_a_store_that_is_gone_nothing_is_known(void **)
{
    Shared shared;

    open(shared.breaker, kStart);
    shared.breaker.forget();
    assert_false(shared.breaker.is_open());
}

void of_the_server_before_nothing_is_left(void **)
{
    Shared shared;
    BreakerState &state = shared.state;

    for (auto *time : {&state.next_probe, &state.opened_at, &state.closed_at,
                       &state.failed_at, &state.delay})
    {
        *time = kStart;
    }

    for (auto *number : {&state.failures, &state.reason}) {
        *number = 7;
    }

    for (auto &word : state.connected) {
        word = 7;
    }

    shared.breaker.reset();

    for (auto *time : {&state.next_probe, &state.opened_at, &state.closed_at,
                       &state.failed_at, &state.delay})
    {
        assert_int_equal(time->load(), 0);
    }

    for (auto *number : {&state.failures, &state.reason}) {
        assert_int_equal(number->load(), 0);
    }

    for (auto &word : state.connected) {
        assert_int_equal(word.load(), 0);
    }
}

void it_says_since_when_it_is_open_and_why(void **)
{
    Shared shared;

    open(shared.breaker, kStart);
    shared.breaker.explain("10.0.0.1:6379", "it does not reply");

    sl::Outage outage = shared.breaker.outage(kStart + 1500);

    assert_int_equal(outage.for_ms, 1500);
    assert_text_equal(outage.server(), "10.0.0.1:6379");
    assert_text_equal(outage.reason(), "it does not reply");
}

void what_was_said_last_is_what_it_says(void **)
{
    Shared shared;

    shared.breaker.explain("a server", "a long reason");
    shared.breaker.explain("", "short");

    sl::Outage outage = shared.breaker.outage(kStart);

    assert_text_equal(outage.server(), "");
    assert_text_equal(outage.reason(), "short");
}

void a_long_reason_is_cut_off(void **)
{
    Shared shared;
    std::string long_text(10000, 'x');

    shared.breaker.explain(long_text, long_text);

    sl::Outage outage = shared.breaker.outage(kStart);

    assert_int_equal(outage.server().size(), sl::Outage::kMaxServer);
    assert_int_equal(outage.reason().size(), sl::Outage::kMaxReason);
}

void another_server_is_up_though_this_one_is_down(void **)
{
    Shared s;
    BreakerState other{};

    open(s.breaker, kStart);
    assert_false(s.breaker.move_to(s.state));
    assert_true(s.breaker.is_open());

    assert_true(s.breaker.move_to(other));
    assert_false(s.breaker.is_open());
    assert_false(s.breaker.move_to(other));

    assert_true(s.breaker.move_to(s.state));
    assert_true(s.breaker.is_open());
}

void nobody_ever_reads_half_a_reason(void **)
{
    Shared shared;
    std::atomic<bool> is_done{false};
    auto write = [&](char ch) {
        std::string text(200, ch);

        while (!is_done) {
            shared.breaker.explain(text, text);
        }
    };

    std::thread first(write, 'a');
    std::thread second(write, 'b');

    for (int i = 0; i < 20000; i++) {
        sl::Outage outage = shared.breaker.outage(kStart);
        std::string_view reason = outage.reason();

        if (!reason.empty()) {
            assert_text_equal(reason, std::string(200, reason[0]));
            assert_text_equal(outage.server().substr(0, 100),
                              reason.substr(0, 100));
        }
    }

    is_done = true;
    first.join();
    second.join();
}

void delays_and_times_that_never_were_do_no_harm(void **)
{
    for (int64_t nonsense : {INT64_MIN, int64_t{-1}, INT64_MAX}) {
        Shared shared;

        shared.state.delay = nonsense;
        shared.state.closed_at = nonsense;
        shared.state.opened_at = nonsense;
        shared.breaker.open_for(kStart);

        assert_true(shared.breaker.failed_for_all(kStart, 0, 0));
        assert_in_range(shared.state.next_probe.load() - kStart,
                        Breaker::kShortestDelay, Breaker::kLongestDelay);
        assert_int_equal(shared.breaker.open_for(kStart + 5), 5);
    }
}

void a_text_is_no_longer_than_there_is_room_for_it(void **)
{
    sl::Outage outage{};

    outage.server_size = SIZE_MAX;
    outage.reason_size = SIZE_MAX;

    assert_int_equal(outage.server().size(), sl::Outage::kMaxServer);
    assert_int_equal(outage.reason().size(), sl::Outage::kMaxReason);
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(of_a_store_that_is_gone_nothing_is_known),
        cmocka_unit_test(of_the_server_before_nothing_is_left),
        cmocka_unit_test(it_is_closed_at_first),
        cmocka_unit_test(five_failures_in_a_row_open_it),
        cmocka_unit_test(a_success_in_between_starts_the_row_anew),
        cmocka_unit_test(a_single_failure_is_forgotten_too),
        cmocka_unit_test(a_second_success_in_a_millisecond_does_so_too),
        cmocka_unit_test(failures_at_the_same_time_count_as_one),
        cmocka_unit_test(more_failures_do_not_open_it_twice),
        cmocka_unit_test(what_concerns_all_opens_it_at_once),
        cmocka_unit_test(others_may_be_connected),
        cmocka_unit_test(a_thousand_workers_are_told_apart),
        cmocka_unit_test(the_second_who_opens_it_is_told_so),
        cmocka_unit_test(a_success_does_not_close_it),
        cmocka_unit_test(it_is_known_for_how_long_it_has_been_open),
        cmocka_unit_test(it_is_probed_when_the_time_has_come),
        cmocka_unit_test(it_is_probed_however_late_somebody_looks),
        cmocka_unit_test(one_at_a_time_may_probe_it),
        cmocka_unit_test(whoever_dies_over_it_is_replaced),
        cmocka_unit_test(the_span_is_that_of_whoever_took_it),
        cmocka_unit_test(a_probe_that_comes_late_counts_if_nobody_took_over),
        cmocka_unit_test(a_failure_of_one_who_was_replaced_means_nothing),
        cmocka_unit_test(a_success_of_one_who_was_replaced_means_nothing),
        cmocka_unit_test(a_ticket_is_good_for_one_probe),
        cmocka_unit_test(a_ticket_of_the_last_time_is_none_for_this_one),
        cmocka_unit_test(delays_double_up_to_the_ceiling_and_stay_there),
        cmocka_unit_test(failures_in_a_row_lead_to_the_same_delays),
        cmocka_unit_test(jitter_takes_every_value_from_half_to_the_whole),
        cmocka_unit_test(no_random_number_leads_out_of_half_to_the_whole),
        cmocka_unit_test(jitter_does_not_slow_the_growth),
        cmocka_unit_test(a_least_delay_is_kept_and_exceeded_by_a_tenth_at_most),
        cmocka_unit_test(a_least_delay_below_the_delay_changes_nothing),
        cmocka_unit_test(delays_grow_behind_a_least_delay_too),
        cmocka_unit_test(who_fails_again_soon_waits_longer),
        cmocka_unit_test(who_was_settled_starts_anew),
        cmocka_unit_test(who_has_never_failed_starts_with_the_shortest_delay),
        cmocka_unit_test(a_probe_that_succeeds_closes_it),
        cmocka_unit_test(who_has_reason_to_hope_probes_before_it_is_time),
        cmocka_unit_test(what_was_probed_meanwhile_means_nothing_then),
        cmocka_unit_test(there_is_nothing_to_probe_early_while_it_is_closed),
        cmocka_unit_test(a_probe_that_fails_does_not),
        cmocka_unit_test(failures_are_forgotten_when_it_closes),
        cmocka_unit_test(another_reason_is_news_and_the_same_is_not),
        cmocka_unit_test(the_same_reason_is_news_after_it_was_closed),
        cmocka_unit_test(workers_see_the_same),
        cmocka_unit_test(stores_have_nothing_to_do_with_each_other),
        cmocka_unit_test(of_threads_that_fail_or_probe_together_one_wins),
        cmocka_unit_test(one_who_comes_back_late_closes_it_or_is_replaced),
        cmocka_unit_test(
            threads_that_run_freely_never_open_or_probe_it_together),
        cmocka_unit_test(
            failures_seen_by_clocks_that_differ_a_little_count_as_one),
        cmocka_unit_test(no_ticket_is_no_right),
        cmocka_unit_test(threads_that_fail_at_any_times_open_it_once),
        cmocka_unit_test(it_says_since_when_it_is_open_and_why),
        cmocka_unit_test(what_was_said_last_is_what_it_says),
        cmocka_unit_test(a_long_reason_is_cut_off),
        cmocka_unit_test(another_server_is_up_though_this_one_is_down),
        cmocka_unit_test(nobody_ever_reads_half_a_reason),
        cmocka_unit_test(delays_and_times_that_never_were_do_no_harm),
        cmocka_unit_test(a_text_is_no_longer_than_there_is_room_for_it),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
