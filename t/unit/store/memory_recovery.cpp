/* A table that a process was changing when it was killed. */

#include "store/pure/sl_memory_recovery.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "memory_table.h"
#include "store/pure/sl_memory_keys.h"
#include "store/pure/sl_memory_lists.h"

namespace {

using sl::Decided;
using sl::LimitQuery;
using sl::LimitState;
using sl::MemoryTable;
using sl::Recalled;

/*
 * A process that counts requests and takes them back without end, in no order.
 * It says beforehand what the table may say then.
 */
struct Restless {
    struct Report {
        volatile int64_t at_least;
        volatile int64_t at_most;
        volatile int64_t calls;
    };

    static constexpr size_t kTableSize = 64 * 1024;

    [[noreturn]] static void run(void *memory, Report *report, int64_t now)
    {
        constexpr size_t kMost = 64;
        MemoryTable table(memory, kTableSize);
        LimitQuery limits[kMost];
        int64_t times[kMost] = {};
        uint32_t random = static_cast<uint32_t>(now);

        for (;; report->calls = report->calls + 1) {
            random = random * 1664525 + 1013904223;

            LimitQuery &limit = limits[(random >> 16) % kMost];
            int64_t &time = times[(random >> 16) % kMost];
            LimitState state;

            if (time != 0) {
                report->at_least = report->at_least - 1;
                table.settle(&limit, 1, time, time);
                report->at_most = report->at_least;
                time = 0;
                continue;
            }

            limit = limit_of("client", 1000000);
            report->at_most = report->at_most + 1;
            table.ask(&limit, 1, ++now, &state, &time);
            report->at_least = report->at_most;
            limit.place = state.place;
        }
    }
};

void who_is_killed_at_any_moment_leaves_a_table_that_counts(void **)
{
    constexpr size_t kSize = Restless::kTableSize + 4096;
    void *memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    auto *report = reinterpret_cast<Restless::Report *>(
        static_cast<char *>(memory) + Restless::kTableSize);
    const uint8_t secret[MemoryTable::kSecretSize] = {};

    MemoryTable::format(memory, Restless::kTableSize, secret);

    MemoryTable table(memory, Restless::kTableSize);
    LimitQuery look = limit_of("client", 1000000);
    LimitState state;
    int64_t time;

    look.cost = 0;

    for (int64_t round = 1; round <= 200; round++) {
        int64_t now = round * 7200 * kSecond;

        *report = {};

        pid_t child = fork();

        if (child == 0) {
            Restless::run(memory, report, now);
        }

        while (report->calls < 200 && waitpid(child, nullptr, WNOHANG) == 0) {
            sched_yield();
        }

        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, nullptr, 0), child);

        now += 600 * kSecond;

        assert_true(table.ask(&look, 1, now, &state, &time) == Decided::kYes);
        assert_in_range(state.used, report->at_least, report->at_most);

        /* all requests have left: every cell but that of the key is free */
        now += 3600 * kSecond;
        assert_true(table.ask(&look, 1, now, &state, &time) == Decided::kYes);
        assert_int_equal(state.used, 0);
        assert_int_equal(table.stats().free_cells + table.stats().keys,
                         table.stats().cells);
    }

    assert_int_equal(table.stats().evictions, 0);
    assert_true(table.stats().recoveries > 0);
    munmap(memory, kSize);
}

void counts_survive_a_killed_process_among_refusals(void **)
{
    Table t;
    LimitState state;
    int64_t now = kSecond;
    std::string names[50];

    for (int i = 0; i < 50; i++) {
        names[i] = "client" + std::to_string(i);

        for (int k = 0; k < 3; k++) {
            assert_true(t.ask(limit_of(names[i], 3), ++now, &state));
            t.remember(limit_of(names[i], 3 + k), 1000 * kSecond, ++now);
        }
    }

    t.table.leave_half_done();

    /* refusals may have been forgotten; if not, they are true */
    for (const std::string &name : names) {
        LimitQuery limit = limit_of(name, 3);

        if (t.table.recall(limit, ++now, sl::kAnyAge, &state)
            == Recalled::kRefusal) {
            assert_int_equal(state.used, 5);
            assert_in_range(state.wait_us, 999 * kSecond, 1000 * kSecond);
        }
    }

    /* every cell is somewhere: each key has a block */
    sl::TableStats stats = t.table.stats();

    assert_int_equal(stats.recoveries, 1);
    assert_int_equal(stats.evictions, 0);
    assert_true(stats.keys >= 50);
    assert_int_equal(stats.free_cells + 2 * stats.keys, stats.cells);

    for (const std::string &name : names) {
        LimitQuery limit = limit_of(name, 3);

        assert_true(t.ask(limit, ++now, &state));
        assert_false(state.admits);
        assert_int_equal(state.used, 3);

        t.remember(limit, 10 * kSecond, now);
        assert_int_equal(t.wait(limit, now), 10 * kSecond);
    }
}

void whoever_remembers_or_forgets_puts_things_right_too(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);
    LimitState state;

    assert_true(t.ask(limit, kSecond, &state));

    t.table.leave_half_done();
    t.remember(limit, 10 * kSecond, 2 * kSecond);
    assert_int_equal(t.table.stats().recoveries, 1);
    assert_int_equal(t.wait(limit, 3 * kSecond), 9 * kSecond);

    t.table.leave_half_done();
    t.table.forget(limit);
    assert_int_equal(t.table.stats().recoveries, 2);
    assert_false(t.knows(limit, 4 * kSecond));

    assert_true(t.ask(limit, 5 * kSecond, &state));
    assert_int_equal(state.used, 2);
}

/*
 * A table in which "one" has been counted 20 times, which takes three blocks,
 * and "other" ten times. What a killed process left in it is made up.
 */
struct Damaged {
    Table t;
    sl::Cells cells{t.memory.get(), MemoryTable::kSmallestMemory};
    int64_t now = kSecond;

    Damaged()
    {
        for (int i = 0; i < 20; i++) {
            count("one");

            if (i % 2 == 0) {
                count("other");
            }
        }
    }

    void count(std::string_view name)
    {
        LimitState state;

        assert_true(t.ask(limit_of(name, 1000), ++now, &state));
    }

    sl::KeyCell &key(std::string_view name)
    {
        sl::Keys keys(cells);
        sl::KeyName key_name =
            keys.name_of(limit_of(name, 1000), sl::KeyOf::kCounted);

        return cells.key(keys.find(key_name));
    }

    sl::BlockCell &last_block(std::string_view name)
    {
        return cells.block(key(name).last_block);
    }

    int64_t used(std::string_view name)
    {
        LimitQuery look = limit_of(name, 1000);
        LimitState state;

        look.cost = 0;
        assert_true(t.ask(look, ++now, &state));

        return state.used;
    }

    void assert_counts_newcomers()
    {
        LimitState state;

        for (int64_t i = 1; i <= 100; i++) {
            assert_true(t.ask(limit_of("newcomer", 90), ++now, &state));
            assert_int_equal(state.used, std::min<int64_t>(i, 90));
        }
    }

    void assert_all_are_forgotten()
    {
        t.table.leave_half_done();

        assert_int_equal(used("one"), 0);
        assert_int_equal(used("other"), 0);
        assert_int_equal(t.table.stats().free_cells, t.table.stats().cells);
        assert_counts_newcomers();
    }
};

void where_what_is_follows_from_the_size_not_from_what_is_written(void **)
{
    for (uint32_t nonsense : {0u, 1u, 0x7fffffffu, 0xffffffffu}) {
        Damaged d;
        sl::TableHeader &h = d.cells.header();

        h.first_cell = nonsense;
        h.end_cell = nonsense;
        h.hash_mask = nonsense;
        h.free_head = nonsense;
        h.free_count = nonsense;
        d.t.table.leave_half_done();

        assert_int_equal(d.used("one"), 20);
        assert_int_equal(d.used("other"), 10);
        d.assert_counts_newcomers();
    }
}

void keys_expire_when_they_would_have(void **)
{
    Damaged d;
    int64_t expires = d.key("one").expires_us;

    d.t.table.leave_half_done();
    assert_int_equal(d.used("other"), 10);
    assert_int_equal(d.key("one").expires_us, expires);
}

void blocks_that_cannot_be_a_chain_are_not_followed(void **)
{
    {
        Damaged d;
        d.last_block("one").next = 0xffffffff;
        d.assert_all_are_forgotten();
    }
    {
        Damaged d;
        d.last_block("one").next = 1; /* a part of the header */
        d.assert_all_are_forgotten();
    }
    {
        Damaged d;
        d.last_block("one").next = d.key("one").first_block;
        d.assert_all_are_forgotten();
    }
    {
        Damaged d;
        d.last_block("one").next = d.key("other").first_block;
        d.assert_all_are_forgotten();
    }
    {
        Damaged d;
        d.last_block("one").next = d.cells.header().free_head;
        d.assert_all_are_forgotten();
    }
}

/* Where a chain begins is counted from the start then, expired or not. */
void a_chain_that_begins_behind_its_block_begins_with_it(void **)
{
    for (uint8_t position : {7, 200}) {
        Damaged d;
        d.key("one").first_position = position;
        d.t.table.leave_half_done();
        assert_int_equal(d.used("one"), 20);
    }
}

/* It would follow what is counted there next. */
void what_stands_behind_the_last_entry_is_gone_afterwards(void **)
{
    for (int64_t cost : {1, 2}) {
        Damaged d;
        LimitQuery limit = limit_of("other", 1000);
        LimitState state;

        limit.cost = cost;
        assert_true(d.t.ask(limit, ++d.now, &state));

        sl::BlockCell &block = d.last_block("other");

        if (cost == 1) {
            block.ones[5] = kSecond;
        } else {
            block.weighted[2] = {kSecond, 5};
        }

        d.t.table.leave_half_done();
        assert_int_equal(d.used("other"), 10 + cost);

        assert_true(d.t.ask(limit, ++d.now, &state));
        d.t.table.leave_half_done();
        assert_int_equal(d.used("other"), 10 + 2 * cost);
    }
}

void entries_that_nobody_can_have_counted_are_not_believed(void **)
{
    {
        Damaged d;
        d.last_block("one").ones[2] = d.last_block("one").ones[1];
        d.assert_all_are_forgotten();
    }

    for (int64_t stamp : {INT64_MIN, INT64_MAX, int64_t{1}, 2 * kSecond}) {
        Damaged d;
        d.last_block("one").ones[2] = stamp;
        d.assert_all_are_forgotten();
    }

    for (int64_t cost : {INT64_MIN, int64_t{-1}, INT64_MAX}) {
        Damaged d;
        LimitQuery heavy = limit_of("one", 1000);
        LimitState state;

        heavy.cost = 2;
        assert_true(d.t.ask(heavy, ++d.now, &state));
        d.last_block("one").weighted[0].cost = cost;
        d.assert_all_are_forgotten();
    }

    /* their sum would overflow in the end */
    Damaged d;
    LimitQuery heavy = limit_of("one", 1000);
    LimitState state;

    heavy.cost = 2;

    for (int i = 0; i < 3; i++) {
        assert_true(d.t.ask(heavy, ++d.now, &state));
        d.last_block("one").weighted[i].cost = int64_t{1} << 59;
    }

    d.assert_all_are_forgotten();
}

void keys_that_cannot_be_there_are_not_believed(void **)
{
    {
        Damaged d;
        d.key("one").list = sl::IdleLists::kLists;
        d.assert_all_are_forgotten();
    }
    {
        Damaged d;
        d.key("one").name = d.key("other").name;
        d.assert_all_are_forgotten();
    }
}

/* Nobody waits until the clock is where it never was. */
void a_time_that_cannot_be_is_not_believed(void **)
{
    for (int64_t nonsense : {INT64_MIN, int64_t{-1}, INT64_MAX}) {
        for (int field = 0; field < 3; field++) {
            Damaged d;
            sl::TableHeader &h = d.cells.header();

            (field == 0   ? h.clock.now_us
             : field == 1 ? h.clock.ahead_us
                          : h.last_stamp_us) = nonsense;
            d.assert_all_are_forgotten();
            assert_in_range(h.last_stamp_us, kSecond, d.now);
        }
    }
}

void a_table_full_of_one_byte_is_a_table_again(void **)
{
    for (int byte = 0; byte < 256; byte++) {
        Damaged d;

        memset(d.t.memory.get(), byte, MemoryTable::kSmallestMemory);
        d.assert_all_are_forgotten();
    }
}

void who_has_nothing_counted_is_gone_afterwards(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);
    LimitState state;
    int64_t time;
    uint64_t free_cells = t.table.stats().free_cells;

    assert_true(t.ask(limit, kSecond, &state, &time));
    t.take_back(limit, state, time);

    t.table.leave_half_done();
    limit.cost = 0;
    assert_true(t.ask(limit, 2 * kSecond, &state));
    assert_int_equal(state.used, 0);
    assert_int_equal(t.table.stats().recoveries, 1);
    assert_int_equal(t.table.stats().keys, 0);
    assert_int_equal(t.table.stats().free_cells, free_cells);
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(
            who_is_killed_at_any_moment_leaves_a_table_that_counts),
        cmocka_unit_test(counts_survive_a_killed_process_among_refusals),
        cmocka_unit_test(whoever_remembers_or_forgets_puts_things_right_too),
        cmocka_unit_test(
            where_what_is_follows_from_the_size_not_from_what_is_written),
        cmocka_unit_test(keys_expire_when_they_would_have),
        cmocka_unit_test(blocks_that_cannot_be_a_chain_are_not_followed),
        cmocka_unit_test(a_chain_that_begins_behind_its_block_begins_with_it),
        cmocka_unit_test(what_stands_behind_the_last_entry_is_gone_afterwards),
        cmocka_unit_test(entries_that_nobody_can_have_counted_are_not_believed),
        cmocka_unit_test(keys_that_cannot_be_there_are_not_believed),
        cmocka_unit_test(a_time_that_cannot_be_is_not_believed),
        cmocka_unit_test(a_table_full_of_one_byte_is_a_table_again),
        cmocka_unit_test(who_has_nothing_counted_is_gone_afterwards),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
