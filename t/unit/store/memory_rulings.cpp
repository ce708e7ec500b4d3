/* What operators rule about clients that are counted in memory, and what they
 * get to see. */

#include "store/pure/sl_memory_rulings.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "memory_table.h"
#include "store/pure/sl_memory_recovery.h"

namespace {

using sl::Act;
using sl::Decided;
using sl::LimitQuery;
using sl::LimitState;
using sl::Ruling;
using sl::RulingsPage;
using sl::Standing;

constexpr int64_t kNow = 1000 * kSecond;
constexpr int64_t kHour = 3600 * kSecond;

/* The smallest table has room for so many. */
constexpr unsigned kFewest = 4;

Decided intervene(Table *t, const LimitQuery &client, Act act, int64_t lasts,
                  int64_t max, int64_t now, Standing *standing)
{
    Decided decided = Decided::kNotYet;

    while (decided == Decided::kNotYet) {
        decided = t->table.intervene(client, {act, lasts, max}, now, standing);
    }

    return decided;
}

Standing look(Table *t, const LimitQuery &client, int64_t now)
{
    Standing standing;

    assert_true(intervene(t, client, Act::kLook, 0, sl::kOwnMax, now, &standing)
                == Decided::kYes);

    return standing;
}

bool ban(Table *t, const LimitQuery &client, int64_t lasts, int64_t now = kNow)
{
    Standing standing;

    return intervene(t, client, Act::kBan, lasts, sl::kOwnMax, now, &standing)
           == Decided::kYes;
}

bool override_max(Table *t, const LimitQuery &client, int64_t max,
                  int64_t lasts, int64_t now = kNow)
{
    Standing standing;

    return intervene(t, client, Act::kOverride, lasts, max, now, &standing)
           == Decided::kYes;
}

Standing forget(Table *t, const LimitQuery &client, int64_t now)
{
    Standing standing;

    assert_true(
        intervene(t, client, Act::kForget, 0, sl::kOwnMax, now, &standing)
        == Decided::kYes);

    return standing;
}

LimitState ask(Table *t, const LimitQuery &limit, int64_t now)
{
    LimitState state;

    assert_true(t->ask(limit, now, &state));

    return state;
}

LimitQuery with_cost(LimitQuery limit, int64_t cost)
{
    limit.cost = cost;
    return limit;
}

LimitQuery counting_refused(LimitQuery limit)
{
    limit.counts_refused = true;
    return limit;
}

LimitQuery in_zone(LimitQuery limit, std::string_view zone)
{
    limit.zone = zone;
    return limit;
}

sl::Cells cells_of(const Table &t,
                   size_t size = sl::MemoryTable::kSmallestMemory)
{
    return {t.memory.get(), size};
}

/* Readable keys of a zone's rulings, in their order. */
std::vector<std::string> listed(Table *t, std::string_view zone, int64_t now)
{
    std::vector<std::string> keys;
    uint32_t next = 0;

    do {
        RulingsPage page;

        t->table.list_rulings(zone, next, now, &page);

        for (size_t i = 0; i < page.count; i++) {
            keys.emplace_back(page.clients[i].key);
        }

        assert_true(page.next == 0 || page.next > next);
        next = page.next;
    } while (next != 0);

    return keys;
}

void a_client_nobody_has_seen_is_known_to_have_used_nothing(void **)
{
    Table t;
    Standing standing = look(&t, limit_of("client", 5), kNow);

    assert_int_equal(standing.used, 0);
    assert_int_equal(standing.wait_us, sl::kNoWait);
    assert_int_equal(standing.ban_left_us, 0);
    assert_int_equal(standing.max, sl::kOwnMax);
    assert_int_equal(standing.max_left_us, 0);
    assert_int_equal(standing.entries, 0);
    assert_int_equal(standing.shown, 0);
    assert_int_equal(t.table.stats().keys, 0);
}

void who_is_banned_is_refused_until_the_ban_ends(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);

    assert_true(ban(&t, limit, 60 * kSecond));

    LimitState state = ask(&t, limit, kNow + 1);

    assert_false(state.admits);
    assert_true(state.is_banned);
    assert_int_equal(state.ruled_max, sl::kOwnMax);
    assert_int_equal(state.used, 0);
    assert_int_equal(state.wait_us, 60 * kSecond - 1);

    assert_true(ask(&t, limit, kNow + 60 * kSecond - 1).is_banned);
    assert_true(ask(&t, limit, kNow + 60 * kSecond).is_counted);
}

void a_ban_refuses_also_who_only_looks(void **)
{
    Table t;
    LimitQuery limit = with_cost(limit_of("client", 5), 0);

    ban(&t, limit, 60 * kSecond);
    assert_true(ask(&t, limit, kNow + 1).is_banned);
}

void nobody_else_is_banned(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);

    ban(&t, limit, 60 * kSecond);
    assert_true(ask(&t, limit_of("another", 5), kNow + 1).is_counted);
    assert_true(ask(&t, in_zone(limit, "elsewhere"), kNow + 2).is_counted);
}

void a_ban_can_be_lifted_and_begun_anew(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);

    ban(&t, limit, 60 * kSecond);
    ban(&t, limit, 0);
    assert_true(ask(&t, limit, kNow + 1).is_counted);

    ban(&t, limit, 30 * kSecond, kNow + 1);
    assert_int_equal(ask(&t, limit, kNow + 2).wait_us, 30 * kSecond - 1);
    ban(&t, limit, 90 * kSecond, kNow + 2);
    assert_int_equal(ask(&t, limit, kNow + 3).wait_us, 90 * kSecond - 1);
    assert_int_equal(listed(&t, "zone", kNow + 3).size(), 1);
}

void to_lift_what_is_not_there_changes_nothing(void **)
{
    Table t;

    assert_true(ban(&t, limit_of("client", 5), 0));
    assert_true(override_max(&t, limit_of("client", 5), 7, 0));
    assert_int_equal(cells_of(t).header().rulings.last, 0);
}

void a_ban_ends_when_both_it_and_the_window_allow(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 1);

    ask(&t, limit, kNow);
    ban(&t, limit, 60 * kSecond, kNow);
    assert_int_equal(ask(&t, limit, kNow + 1).wait_us, kHour - 1);
    ban(&t, limit, 2 * kHour, kNow + 1);
    assert_int_equal(ask(&t, limit, kNow + 2).wait_us, 2 * kHour - 1);
}

void who_is_banned_does_not_count_even_where_refused_ones_do(void **)
{
    for (unsigned buckets : {0, 6}) {
        Table t;
        LimitQuery limit = counting_refused(limit_of("client", 1, buckets));

        assert_true(ask(&t, limit, kNow).is_counted);
        ban(&t, limit, 60 * kSecond, kNow);

        for (int64_t i = 1; i <= 20; i++) {
            assert_int_equal(ask(&t, limit, kNow + i).used, 1);
        }

        assert_int_equal(look(&t, limit, kNow + 21).entries, 1);
        ban(&t, limit, 0, kNow + 22);

        /* of a log the newer one is kept */
        assert_int_equal(ask(&t, limit, kNow + 23).used, buckets ? 2 : 1);
    }
}

void a_dry_run_keeps_nobody_out_banned_or_not(void **)
{
    Table t;
    LimitQuery limits[] = {limit_of("client", 5),
                           in_zone(limit_of("client", 5), "other")};
    LimitState states[2];
    int64_t time;

    limits[0].dry_run = true;
    ban(&t, limits[0], 60 * kSecond);
    assert_true(t.table.ask(limits, 2, kNow + 1, states, &time)
                == Decided::kYes);
    assert_true(states[0].is_banned);
    assert_false(states[0].admits);
    assert_true(states[1].is_counted);

    limits[0].dry_run = false;
    assert_true(t.table.ask(limits, 2, kNow + 2, states, &time)
                == Decided::kYes);
    assert_true(states[0].is_banned);
    assert_true(states[1].admits);
    assert_false(states[1].is_counted);
}

void another_max_counts_while_it_lasts(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 1);

    override_max(&t, limit, 3, 60 * kSecond);

    for (int64_t i = 1; i <= 3; i++) {
        LimitState state = ask(&t, limit, kNow + i);

        assert_true(state.is_counted);
        assert_int_equal(state.ruled_max, 3);
    }

    LimitState refused = ask(&t, limit, kNow + 4);

    assert_false(refused.admits);
    assert_false(refused.is_banned);
    assert_int_equal(refused.ruled_max, 3);

    /* by then its own max counts, and all three must have left */
    assert_int_equal(refused.wait_us, kHour - 1);

    LimitState later = ask(&t, limit, kNow + 60 * kSecond);

    assert_false(later.admits);
    assert_int_equal(later.ruled_max, sl::kOwnMax);
    assert_int_equal(later.used, 3);
}

void a_lower_max_can_be_waited_for_until_it_ends(void **)
{
    Table t;
    LimitQuery limit = with_cost(limit_of("client", 10), 2);

    override_max(&t, limit, 3, 60 * kSecond);
    assert_true(ask(&t, limit, kNow + 1).is_counted);
    assert_int_equal(ask(&t, limit, kNow + 2).wait_us, 60 * kSecond - 2);

    /* a cost above it never fits, but its end is waited for */
    assert_int_equal(ask(&t, with_cost(limit, 4), kNow + 3).wait_us,
                     60 * kSecond - 3);
    assert_true(ask(&t, with_cost(limit, 4), kNow + 60 * kSecond).is_counted);
}

void another_max_that_outlasts_the_window_is_what_one_waits_for(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 10);

    override_max(&t, limit, 1, 2 * kHour);
    assert_true(ask(&t, limit, kNow).is_counted);
    assert_int_equal(ask(&t, limit, kNow + 1).wait_us, kHour - 1);
    assert_true(ask(&t, limit, kNow + kHour).is_counted);
}

/* When the override ends, the limit's own max decides about the same units. */
void the_larger_max_says_how_many_refused_ones_are_kept(void **)
{
    for (int64_t max : {2, 9}) {
        Table t;
        LimitQuery limit = counting_refused(limit_of("client", 5));
        LimitState state;

        override_max(&t, limit, max, kHour / 2);

        for (int64_t i = 1; i <= 20; i++) {
            state = ask(&t, limit, kNow + i);
            assert_int_equal(state.used,
                             std::min(i, std::max<int64_t>(max, 5)));
        }

        assert_false(state.admits);

        state = ask(&t, limit, kNow + kHour / 2);
        assert_false(state.admits);
        assert_int_equal(state.used, 5);
    }
}

/* All that count while the override holds stay for an hour; afterwards the
 * limit's own max admits. */
void who_counts_when_refused_may_come_back_when_a_lower_max_ends(void **)
{
    Table t;
    LimitQuery limit = counting_refused(limit_of("client", 5));

    override_max(&t, limit, 2, kSecond);

    for (int64_t i = 0; i < 3; i++) {
        ask(&t, limit, kNow + i);
    }

    LimitState state = ask(&t, limit, kNow + 10);

    assert_false(state.admits);
    assert_int_equal(state.used, 4);
    assert_int_equal(state.wait_us, kSecond - 10);
    assert_true(ask(&t, limit, kNow + kSecond).admits);
}

void a_banned_request_drops_nothing(void **)
{
    Table t;
    LimitQuery limit = counting_refused(limit_of("client", 5));

    for (int64_t i = 0; i < 5; i++) {
        ask(&t, limit, kNow + i);
    }

    ban(&t, limit, kHour, kNow + 5);
    limit.max = 2;
    assert_int_equal(ask(&t, limit, kNow + 6).used, 5);
}

void a_ban_and_another_max_end_each_by_itself(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);

    override_max(&t, limit, 7, 20 * kSecond);
    ban(&t, limit, 10 * kSecond);

    Standing standing = look(&t, limit, kNow + 1);

    assert_int_equal(standing.ban_left_us, 10 * kSecond - 1);
    assert_int_equal(standing.max, 7);
    assert_int_equal(standing.max_left_us, 20 * kSecond - 1);

    standing = look(&t, limit, kNow + 10 * kSecond);
    assert_int_equal(standing.ban_left_us, 0);
    assert_int_equal(standing.max, 7);

    standing = look(&t, limit, kNow + 20 * kSecond);
    assert_int_equal(standing.max, sl::kOwnMax);
    assert_int_equal(standing.max_left_us, 0);

    /* what is lifted takes nothing else with it */
    override_max(&t, limit, 7, 20 * kSecond, kNow + 30 * kSecond);
    ban(&t, limit, 10 * kSecond, kNow + 30 * kSecond);
    override_max(&t, limit, sl::kOwnMax, 0, kNow + 31 * kSecond);
    standing = look(&t, limit, kNow + 32 * kSecond);
    assert_int_equal(standing.ban_left_us, 8 * kSecond);
    assert_int_equal(standing.max, sl::kOwnMax);
}

void to_forget_takes_counts_and_a_ban_but_no_override(void **)
{
    for (unsigned buckets : {0, 6}) {
        Table t;
        LimitQuery limit = counting_refused(limit_of("client", 2, buckets));

        for (int64_t i = 1; i <= 5; i++) {
            ask(&t, limit, kNow + i);
        }

        override_max(&t, limit, 3, kHour, kNow + 6);
        ban(&t, limit, kHour, kNow + 7);

        Standing standing = forget(&t, limit, kNow + 8);

        assert_int_equal(standing.used, 0);
        assert_int_equal(standing.wait_us, sl::kNoWait);
        assert_int_equal(standing.entries, 0);
        assert_int_equal(standing.shown, 0);
        assert_int_equal(standing.ban_left_us, 0);
        assert_int_equal(standing.max, 3);
        assert_int_equal(t.table.stats().keys, 0);
        assert_int_equal(t.table.stats().free_cells, t.table.stats().cells);
        assert_int_equal(ask(&t, limit, kNow + 9).used, 1);
    }
}

void what_was_forgotten_is_not_taken_back(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);
    LimitState state;
    int64_t time;

    t.ask(limit, kNow, &state, &time);
    forget(&t, limit, kNow + 1);
    assert_int_equal(ask(&t, limit, kNow + 2).used, 1);
    t.take_back(limit, state, time);
    assert_int_equal(look(&t, limit, kNow + 3).used, 1);
}

void the_newest_are_shown_first(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 1000);

    for (int64_t i = 1; i <= 150; i++) {
        ask(&t, with_cost(limit, i % 3 ? 1 : i % 5 + 1), kNow + 10 * i);
    }

    Standing standing = look(&t, limit, kNow + 2000);

    /* each cost has as many units */
    assert_int_equal(standing.entries, standing.used);
    assert_int_equal(standing.entries, 100 + 10 * (1 + 2 + 3 + 4 + 5));
    assert_int_equal(standing.shown, Standing::kMostShown);
    assert_int_equal(standing.wait_us, kHour - 1990);

    for (int64_t i = 0; i < 100; i++) {
        const sl::CountedRequest &shown =
            standing.requests[static_cast<size_t>(i)];
        int64_t n = 150 - i;

        assert_int_equal(shown.ago_us, 2000 - 10 * n);
        assert_int_equal(shown.cost, n % 3 ? 1 : n % 5 + 1);
        assert_int_equal(shown.id_size, 0);
        assert_text_equal(shown.id_text(), "");
    }
}

void what_was_taken_back_is_not_shown(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 1000);
    LimitState states[30];
    int64_t times[30];

    for (int64_t i = 0; i < 30; i++) {
        t.ask(limit, kNow + i, &states[i], &times[i]);
    }

    for (int i = 0; i < 30; i++) {
        if (i % 4 != 1) {
            t.take_back(limit, states[i], times[i]);
        }
    }

    Standing standing = look(&t, limit, kNow + 100);

    assert_int_equal(standing.used, 8);
    assert_int_equal(standing.entries, 8);
    assert_int_equal(standing.shown, 8);
    assert_int_equal(standing.requests[0].ago_us, 71);
    assert_int_equal(standing.requests[7].ago_us, 99);
}

void refused_ones_stand_among_the_others_by_their_time(void **)
{
    Table t;
    LimitQuery limit = counting_refused(limit_of("client", 5));

    /* the third finds no room, the fourth does */
    ask(&t, with_cost(limit, 1), kNow + 1);
    ask(&t, with_cost(limit, 3), kNow + 2);
    ask(&t, with_cost(limit, 3), kNow + 3);
    override_max(&t, limit, 9, kHour, kNow + 4);
    ask(&t, with_cost(limit, 1), kNow + 5);

    /* of the second, two units are left */
    Standing standing = look(&t, limit, kNow + 10);
    const int64_t ago[] = {5, 7, 8};
    const int64_t cost[] = {1, 3, 2};

    assert_int_equal(standing.used, 6);
    assert_int_equal(standing.entries, 6);
    assert_int_equal(standing.shown, 3);

    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(standing.requests[i].ago_us, ago[i]);
        assert_int_equal(standing.requests[i].cost, cost[i]);
    }
}

void a_bucket_is_shown_by_its_beginning(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 100, 6);
    int64_t width = kHour / 6;

    for (int64_t i = 0; i < 4; i++) {
        ask(&t, with_cost(limit, 5), 100 * width + i * width + 7);
        ask(&t, with_cost(limit, 2), 100 * width + i * width + 8);
    }

    Standing standing = look(&t, limit, 103 * width + 10);

    assert_int_equal(standing.used, 28);
    assert_int_equal(standing.entries, 4);
    assert_int_equal(standing.shown, 4);

    for (int64_t i = 0; i < 4; i++) {
        const sl::CountedRequest &bucket =
            standing.requests[static_cast<size_t>(i)];

        assert_int_equal(bucket.ago_us, 10 + i * width);
        assert_int_equal(bucket.cost, 7);
    }
}

void to_look_counts_nothing_and_drops_what_is_over(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);

    ask(&t, limit, kNow);
    ask(&t, limit, kNow + kSecond);

    for (int64_t i = 0; i < 10; i++) {
        assert_int_equal(look(&t, limit, kNow + kSecond + i).used, 2);
    }

    assert_int_equal(look(&t, limit, kNow + kHour - 1).used, 2);

    Standing standing = look(&t, limit, kNow + kHour);

    assert_int_equal(standing.used, 1);
    assert_int_equal(standing.entries, 1);
    assert_int_equal(standing.wait_us, kSecond);
    assert_int_equal(look(&t, limit, kNow + kHour + kSecond).used, 0);
}

void of_a_long_log_the_number_is_known(void **)
{
    Table t(8 << 20);
    LimitQuery limit = limit_of("client", 1000000);

    for (int64_t i = 0; i < 100000; i++) {
        ask(&t, limit, kNow + i);
    }

    Standing standing = look(&t, limit, kNow + 200000);

    assert_int_equal(standing.used, 100000);
    assert_int_equal(standing.entries, 100000);
    assert_int_equal(standing.requests[0].ago_us, 100001);
    assert_int_equal(standing.requests[99].ago_us, 100100);

    LimitQuery dear = with_cost(limit_of("another", 1000000), 7);

    for (int64_t i = 0; i < 9000; i++) {
        ask(&t, dear, kNow + 200000 + i);
    }

    assert_int_equal(look(&t, dear, kNow + 300000).entries, 7 * 9000);
}

void more_than_may_be_dropped_at_a_time_goes_in_several_calls(void **)
{
    Table t(8 << 20);
    LimitQuery limit = limit_of("client", 1000000);
    Standing standing;

    for (int64_t i = 0; i < 20000; i++) {
        ask(&t, limit, kNow + i);
    }

    ask(&t, limit, kNow + kSecond);

    assert_true(t.table.intervene(limit, {Act::kBan, kHour, 0},
                                  kNow + kHour + kSecond - 1, &standing)
                == Decided::kNotYet);
    assert_int_equal(listed(&t, "zone", kNow + kHour + kSecond - 1).size(), 0);
    assert_int_equal(look(&t, limit, kNow + kHour + kSecond - 1).used, 1);
}

void a_full_area_says_so_and_changes_nothing(void **)
{
    Table t;

    assert_int_equal(t.table.most_rulings(), kFewest);

    for (unsigned i = 0; i < kFewest; i++) {
        assert_true(ban(&t, limit_of(std::to_string(i), 5), kHour));
    }

    assert_false(ban(&t, limit_of("one more", 5), kHour));
    assert_false(override_max(&t, limit_of("one more", 5), 3, kHour));
    assert_true(ask(&t, limit_of("one more", 5), kNow + 1).is_counted);

    /* nothing has to be written for these */
    assert_true(ban(&t, limit_of("one more", 5), 0));
    assert_int_equal(forget(&t, limit_of("one more", 5), kNow + 2).used, 0);

    for (unsigned i = 0; i < kFewest; i++) {
        assert_true(
            ask(&t, limit_of(std::to_string(i), 5), kNow + 3).is_banned);
        assert_true(override_max(&t, limit_of(std::to_string(i), 5), 3, kHour,
                                 kNow + 4));
    }
}

void what_has_ended_or_was_lifted_makes_room(void **)
{
    Table t;

    for (unsigned i = 0; i < kFewest; i++) {
        ban(&t, limit_of(std::to_string(i), 5), (i + 1) * kSecond);
    }

    assert_false(ban(&t, limit_of("a", 5), kHour, kNow + kSecond - 1));
    assert_true(ban(&t, limit_of("a", 5), kHour, kNow + kSecond));
    assert_false(ban(&t, limit_of("b", 5), kHour, kNow + kSecond));

    ban(&t, limit_of("2", 5), 0, kNow + kSecond);
    assert_true(ban(&t, limit_of("b", 5), kHour, kNow + kSecond));
    assert_false(ban(&t, limit_of("2", 5), kHour, kNow + kSecond));

    auto keys = listed(&t, "zone", kNow + kSecond);

    std::sort(keys.begin(), keys.end());
    assert_true(keys == std::vector<std::string>({"1", "3", "a", "b"}));
    assert_false(ask(&t, limit_of("0", 5), kNow + kSecond + 1).is_banned);
    assert_false(ask(&t, limit_of("2", 5), kNow + kSecond + 2).is_banned);
    assert_true(ask(&t, limit_of("a", 5), kNow + kSecond + 3).is_banned);
    assert_true(ask(&t, limit_of("b", 5), kNow + kSecond + 4).is_banned);
}

void rulings_come_and_go_for_ever(void **)
{
    Table t;
    int64_t now = kNow;

    for (int i = 0; i < 5000; i++) {
        std::string key = std::to_string(i);

        now += kSecond;
        assert_true(
            ban(&t, limit_of(key, 5), (i % kFewest + 1) * kSecond - 1, now)
            || i % kFewest > 0);
    }

    assert_true(ban(&t, limit_of("last", 5), kHour, now + 10 * kSecond));
    assert_int_equal(listed(&t, "zone", now + 10 * kSecond).size(), 1);
}

void without_rulings_there_is_nothing_to_look_for(void **)
{
    Table t;
    const sl::RulingsHeader &header = cells_of(t).header().rulings;

    assert_int_equal(header.until_us, 0);
    ban(&t, limit_of("a", 5), 10 * kSecond);
    ban(&t, limit_of("b", 5), 20 * kSecond);
    assert_int_equal(header.until_us, kNow + 20 * kSecond);
    ban(&t, limit_of("b", 5), 0);
    assert_int_equal(header.until_us, kNow + 10 * kSecond);
    ban(&t, limit_of("a", 5), 0);
    assert_int_equal(header.until_us, 0);
}

void a_flood_of_clients_drives_out_no_ruling(void **)
{
    Table t;

    ban(&t, limit_of("banned", 5), kHour);
    override_max(&t, limit_of("guest", 5), 7, kHour);

    for (int64_t i = 0; i < 10000; i++) {
        ask(&t, limit_of(std::to_string(i), 5), kNow + i);
    }

    assert_true(t.table.stats().evictions > 0);
    assert_true(ask(&t, limit_of("banned", 5), kNow + kSecond).is_banned);
    assert_int_equal(ask(&t, limit_of("guest", 5), kNow + kSecond).ruled_max,
                     7);
}

void a_ruling_outlives_a_change_of_the_window(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5, 6);

    ban(&t, limit, kHour);
    limit.window_us = 60 * kSecond;
    assert_true(ask(&t, limit, kNow + 1).is_banned);
    limit.buckets = 10;
    assert_true(ask(&t, limit, kNow + 2).is_banned);
    limit.buckets = 0;
    assert_true(ask(&t, limit, kNow + 3).is_banned);
    ban(&t, limit, 0, kNow + 4);
    limit.buckets = 6;
    assert_false(ask(&t, limit, kNow + 5).is_banned);
}

void rulings_go_by_the_time_that_never_steps_back(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);

    ban(&t, limit, 10 * kSecond);
    assert_true(ask(&t, limit, kNow + 4 * kSecond).is_banned);
    assert_int_equal(ask(&t, limit, kSecond).wait_us, 6 * kSecond - 1);
    assert_int_equal(ask(&t, limit, 4 * kSecond).wait_us, 3 * kSecond);
    assert_false(ask(&t, limit, 7 * kSecond).is_banned);
}

void no_ruling_is_longer_than_the_longest(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);

    ban(&t, limit, INT64_MAX);
    override_max(&t, limit, INT64_MAX, INT64_MAX);

    Standing standing = look(&t, limit, kNow);

    assert_int_equal(standing.ban_left_us, sl::kLongestRuling);
    assert_int_equal(standing.max_left_us, sl::kLongestRuling);
    assert_int_equal(standing.max, INT64_MAX);
}

void a_list_has_those_of_its_zone(void **)
{
    Table t(1 << 20);
    std::string long_key(200, 'x');

    ban(&t, limit_of("alice", 5), 10 * kSecond);
    override_max(&t, limit_of("bob", 5), 9, 20 * kSecond);
    ban(&t, limit_of(long_key, 5), 30 * kSecond);
    ban(&t, in_zone(limit_of("carol", 5), "other"), 30 * kSecond);
    ban(&t, limit_of("dave", 5), 30 * kSecond);
    ban(&t, limit_of("dave", 5), 0);

    RulingsPage page;

    t.table.list_rulings("zone", 0, kNow + kSecond, &page);
    assert_int_equal(page.count, 3);
    assert_int_equal(page.next, 0);
    assert_text_equal(page.clients[0].key, "alice");
    assert_int_equal(page.clients[0].ban_left_us, 9 * kSecond);
    assert_int_equal(page.clients[0].max, sl::kOwnMax);
    assert_int_equal(page.clients[0].max_left_us, 0);
    assert_text_equal(page.clients[1].key, "bob");
    assert_int_equal(page.clients[1].ban_left_us, 0);
    assert_int_equal(page.clients[1].max, 9);
    assert_int_equal(page.clients[1].max_left_us, 19 * kSecond);
    assert_int_equal(page.clients[2].key.size(), 65);
    assert_int_equal(page.clients[2].key[0], '#');

    assert_int_equal(listed(&t, "other", kNow + kSecond).size(), 1);
    assert_int_equal(listed(&t, "zon", kNow + kSecond).size(), 0);
    assert_int_equal(listed(&t, "zone", kNow + 10 * kSecond).size(), 2);
    assert_int_equal(listed(&t, "zone", kNow + 30 * kSecond).size(), 0);
}

void a_long_list_comes_in_pieces(void **)
{
    constexpr size_t kSize = 64 << 20;
    Table t(kSize);
    RulingsPage page;

    assert_int_equal(t.table.most_rulings(), kSize / 32 / 256);

    for (int i = 0; i < 250; i++) {
        ban(&t, limit_of(std::to_string(i), 5), kHour);
    }

    t.table.list_rulings("zone", 0, kNow, &page);
    assert_int_equal(page.count, 100);
    assert_int_equal(page.next, 101);
    t.table.list_rulings("zone", page.next, kNow, &page);
    assert_int_equal(page.count, 100);
    assert_text_equal(page.clients[0].key, "100");
    t.table.list_rulings("zone", page.next, kNow, &page);
    assert_int_equal(page.count, 50);
    assert_int_equal(page.next, 0);

    for (uint32_t from : {uint32_t{251}, uint32_t{100000}, UINT32_MAX}) {
        t.table.list_rulings("zone", from, kNow, &page);
        assert_int_equal(page.count, 0);
        assert_int_equal(page.next, 0);
    }

    /* of many others not all are gone through at a time */
    for (int i = 0; i < 5000; i++) {
        ban(&t, in_zone(limit_of(std::to_string(i), 5), "other"), kHour);
    }

    ban(&t, limit_of("last", 5), kHour);
    t.table.list_rulings("zone", 251, kNow, &page);
    assert_int_equal(page.count, 0);
    assert_int_equal(page.next, 251 + 4096);
    assert_int_equal(listed(&t, "zone", kNow).size(), 251);
    assert_int_equal(listed(&t, "other", kNow).size(), 5000);
}

void zones_and_keys_may_have_the_longest_names(void **)
{
    Table t;
    std::string zone(sl::kMaxZoneName, 'z');
    std::string key(sl::kMaxReadableKey, 'k');
    LimitQuery limit = in_zone(limit_of(key, 5), zone);

    ban(&t, limit, kHour);
    t.table.leave_half_done();
    assert_true(ask(&t, limit, kNow + 1).is_banned);
    assert_true(listed(&t, zone, kNow + 2) == std::vector<std::string>{key});
}

/* Recovery. */

void rulings_survive_a_process_that_was_killed(void **)
{
    Table t(1 << 20);

    for (int i = 0; i < 50; i++) {
        ban(&t, limit_of(std::to_string(i), 5), (i + 1) * kSecond);
    }

    override_max(&t, limit_of("guest", 5), 7, kHour);
    ban(&t, limit_of("20", 5), 0);

    t.table.leave_half_done();

    auto keys = listed(&t, "zone", kNow + 10 * kSecond);

    assert_int_equal(t.table.stats().recoveries, 1);
    assert_int_equal(keys.size(), 40);
    assert_true(ask(&t, limit_of("10", 5), kNow + 10 * kSecond).is_banned);
    assert_false(ask(&t, limit_of("20", 5), kNow + 10 * kSecond).is_banned);
    assert_int_equal(
        ask(&t, limit_of("guest", 5), kNow + 11 * kSecond).ruled_max, 7);
    assert_int_equal(cells_of(t, 1 << 20).header().rulings.until_us,
                     kNow + kHour);
}

void what_ended_before_a_recovery_makes_room_after_it(void **)
{
    Table t;

    for (unsigned i = 0; i < kFewest; i++) {
        ban(&t, limit_of(std::to_string(i), 5), i < 2 ? kSecond : kHour);
    }

    assert_int_equal(listed(&t, "zone", kNow + kSecond).size(), 2);
    t.table.leave_half_done();
    assert_true(ban(&t, limit_of("a", 5), kHour, kNow + kSecond));
    assert_true(ban(&t, limit_of("0", 5), kHour, kNow + kSecond));
    assert_false(ban(&t, limit_of("b", 5), kHour, kNow + kSecond));
    assert_int_equal(listed(&t, "zone", kNow + kSecond).size(), kFewest);
}

void a_change_that_was_begun_is_finished(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);

    override_max(&t, limit, 7, kHour);

    sl::RulingsHeader &header = cells_of(t).header().rulings;

    header.change_to = Ruling{0, 9, kNow + 2 * kHour};
    header.changing = 1;
    cells_of(t).ruling(1).ruling.max = 9;
    t.table.leave_half_done();

    Standing standing = look(&t, limit, kNow);

    assert_int_equal(standing.max, 9);
    assert_int_equal(standing.max_left_us, 2 * kHour);
    assert_int_equal(header.changing, 0);
    assert_int_equal(header.until_us, kNow + 2 * kHour);
}

/* One entry is broken in some way; the others stay. */
template <typename Function>
void break_first_entry(Function break_it)
{
    Table t;
    sl::Cells cells = cells_of(t);

    ban(&t, limit_of("broken", 5), kHour);
    ban(&t, limit_of("whole", 5), kHour);
    break_it(cells.ruling(1));
    t.table.leave_half_done();

    assert_true(listed(&t, "zone", kNow) == std::vector<std::string>{"whole"});
    assert_false(ask(&t, limit_of("broken", 5), kNow + 1).is_banned);
    assert_true(ask(&t, limit_of("whole", 5), kNow + 2).is_banned);
    assert_true(ban(&t, limit_of("another", 5), kHour, kNow + 3));
}

void of_entries_nobody_can_have_written_none_stays(void **)
{
    using Entry = sl::RulingEntry;

    break_first_entry([](Entry &e) { e.zone_size = 0; });
    break_first_entry([](Entry &e) { e.zone_size = 65; });
    break_first_entry([](Entry &e) { e.key_size = 0; });
    break_first_entry([](Entry &e) { e.key_size = 129; });
    break_first_entry([](Entry &e) { e.ruling.ban_until_us = -1; });
    break_first_entry([](Entry &e) { e.ruling.ban_until_us = INT64_MAX; });
    break_first_entry([](Entry &e) { e.ruling.max = -1; });
    break_first_entry([](Entry &e) { e.ruling.max_until_us = -1; });
    break_first_entry([](Entry &e) { e.ruling.max_until_us = INT64_MAX; });
    break_first_entry([](Entry &e) { e.ruling = Ruling{}; });
}

void of_two_with_one_name_the_first_stays(void **)
{
    Table t;
    sl::Cells cells = cells_of(t);

    ban(&t, limit_of("a", 5), kHour);
    ban(&t, limit_of("b", 5), kHour);
    cells.ruling(2).name = cells.ruling(1).name;
    t.table.leave_half_done();

    assert_true(listed(&t, "zone", kNow) == std::vector<std::string>{"a"});
}

void no_slot_gets_too_many(void **)
{
    constexpr size_t kSize = 4 << 20;
    Table t(kSize);
    sl::Cells cells(t.memory.get(), kSize);

    for (int i = 0; i < 200; i++) {
        ban(&t, limit_of(std::to_string(i), 5), kHour);
        memset(cells.ruling(static_cast<uint32_t>(i) + 1).name.hash, 0, 4);
    }

    t.table.leave_half_done();
    assert_int_equal(listed(&t, "zone", kNow).size(), 64);
}

void any_bytes_in_the_area_lead_nowhere(void **)
{
    uint32_t random = 1;

    for (int round = 0; round < 2000; round++) {
        Table t;
        sl::Cells cells = cells_of(t);
        auto *area = reinterpret_cast<uint8_t *>(&cells.ruling(1));
        auto *header = reinterpret_cast<uint8_t *>(&cells.header().rulings);

        ban(&t, limit_of("a", 5), kHour);
        override_max(&t, limit_of("b", 5), 7, kHour);

        for (int i = 0; i < 40; i++) {
            random = random * 1103515245 + 12345;

            auto value = static_cast<uint8_t>(round % 2 ? random >> 24 : 255);

            if (i % 4 == 0) {
                header[(random >> 8) % sizeof(sl::RulingsHeader)] = value;
            } else {
                area[(random >> 8) % (kFewest * sizeof(sl::RulingEntry))] =
                    value;
            }
        }

        t.table.leave_half_done();
        listed(&t, "zone", kNow);
        ask(&t, limit_of("a", 5), kNow + 1);
        ask(&t, limit_of("c", 5), kNow + 2);
        ban(&t, limit_of("c", 5), kHour, kNow + 3);
        assert_true(listed(&t, "zone", kNow + 4).size() <= kFewest);
    }
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(
            a_client_nobody_has_seen_is_known_to_have_used_nothing),
        cmocka_unit_test(who_is_banned_is_refused_until_the_ban_ends),
        cmocka_unit_test(a_ban_refuses_also_who_only_looks),
        cmocka_unit_test(nobody_else_is_banned),
        cmocka_unit_test(a_ban_can_be_lifted_and_begun_anew),
        cmocka_unit_test(to_lift_what_is_not_there_changes_nothing),
        cmocka_unit_test(a_ban_ends_when_both_it_and_the_window_allow),
        cmocka_unit_test(
            who_is_banned_does_not_count_even_where_refused_ones_do),
        cmocka_unit_test(a_dry_run_keeps_nobody_out_banned_or_not),
        cmocka_unit_test(another_max_counts_while_it_lasts),
        cmocka_unit_test(a_lower_max_can_be_waited_for_until_it_ends),
        cmocka_unit_test(
            another_max_that_outlasts_the_window_is_what_one_waits_for),
        cmocka_unit_test(a_ban_and_another_max_end_each_by_itself),
        cmocka_unit_test(to_forget_takes_counts_and_a_ban_but_no_override),
        cmocka_unit_test(what_was_forgotten_is_not_taken_back),
        cmocka_unit_test(the_newest_are_shown_first),
        cmocka_unit_test(what_was_taken_back_is_not_shown),
        cmocka_unit_test(refused_ones_stand_among_the_others_by_their_time),
        cmocka_unit_test(the_larger_max_says_how_many_refused_ones_are_kept),
        cmocka_unit_test(
            who_counts_when_refused_may_come_back_when_a_lower_max_ends),
        cmocka_unit_test(a_banned_request_drops_nothing),
        cmocka_unit_test(a_bucket_is_shown_by_its_beginning),
        cmocka_unit_test(to_look_counts_nothing_and_drops_what_is_over),
        cmocka_unit_test(of_a_long_log_the_number_is_known),
        cmocka_unit_test(
            more_than_may_be_dropped_at_a_time_goes_in_several_calls),
        cmocka_unit_test(a_full_area_says_so_and_changes_nothing),
        cmocka_unit_test(what_has_ended_or_was_lifted_makes_room),
        cmocka_unit_test(rulings_come_and_go_for_ever),
        cmocka_unit_test(without_rulings_there_is_nothing_to_look_for),
        cmocka_unit_test(a_flood_of_clients_drives_out_no_ruling),
        cmocka_unit_test(a_ruling_outlives_a_change_of_the_window),
        cmocka_unit_test(rulings_go_by_the_time_that_never_steps_back),
        cmocka_unit_test(no_ruling_is_longer_than_the_longest),
        cmocka_unit_test(a_list_has_those_of_its_zone),
        cmocka_unit_test(a_long_list_comes_in_pieces),
        cmocka_unit_test(zones_and_keys_may_have_the_longest_names),
        cmocka_unit_test(rulings_survive_a_process_that_was_killed),
        cmocka_unit_test(what_ended_before_a_recovery_makes_room_after_it),
        cmocka_unit_test(a_change_that_was_begun_is_finished),
        cmocka_unit_test(of_entries_nobody_can_have_written_none_stays),
        cmocka_unit_test(of_two_with_one_name_the_first_stays),
        cmocka_unit_test(no_slot_gets_too_many),
        cmocka_unit_test(any_bytes_in_the_area_lead_nowhere),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
