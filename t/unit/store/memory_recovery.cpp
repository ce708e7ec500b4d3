/* A table that a process was changing when it was killed. */

#include "store/pure/sl_memory_recovery.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "memory_table.h"

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
        MemoryTable table(memory);
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
                table.take_back(&limit, 1, time);
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

    MemoryTable table(memory);
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

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(
            who_is_killed_at_any_moment_leaves_a_table_that_counts),
        cmocka_unit_test(counts_survive_a_killed_process_among_refusals),
        cmocka_unit_test(whoever_remembers_or_forgets_puts_things_right_too),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
