/* The embedded store's table; t/model compares its decisions with a model. */

#include "sl_memory_table.h"

#include <cstdlib>
#include <memory>
#include <string>

#include "unit.h"

namespace {

using sl::LimitQuery;
using sl::LimitState;
using sl::MemoryTable;

constexpr int64_t kSecond = 1000000;

struct Free {
    void operator()(void *memory) const { free(memory); }
};

/* A table, and a client of it. */
struct Table {
    std::unique_ptr<void, Free> memory;
    MemoryTable table;

    explicit Table(size_t size = MemoryTable::kSmallestMemory)
        : memory(aligned_alloc(64, size)), table(memory.get())
    {
        const uint8_t secret[MemoryTable::kSecretSize] = {};

        MemoryTable::format(memory.get(), size, secret);
    }

    bool ask(const LimitQuery &limit, int64_t now, LimitState *state)
    {
        int64_t time;

        return table.ask(&limit, 1, now, state, &time);
    }
};

LimitQuery limit_of(std::string_view key, int64_t max, unsigned buckets = 0)
{
    return {"zone", key, 3600 * kSecond, max, 1, buckets, false, false, false};
}

void soon_after_the_start_of_the_machine_buckets_count_as_ever(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5, 6);
    LimitState state;

    for (int i = 1; i <= 5; i++) {
        assert_true(t.ask(limit, i * kSecond, &state));
        assert_true(state.admits);
        assert_int_equal(state.used, i);
    }

    assert_true(t.ask(limit, 6 * kSecond, &state));
    assert_false(state.admits);
    assert_int_equal(state.wait_us, (7 * 600 - 6) * kSecond);

    t.table.leave_half_done();
    assert_true(t.ask(limit, 7 * kSecond, &state));
    assert_false(state.admits);
    assert_int_equal(state.used, 5);
    assert_int_equal(t.table.stats().recoveries, 1);
}

void who_keeps_coming_is_not_driven_out_by_those_who_come_once(void **)
{
    Table t;
    LimitState state;
    int64_t now = kSecond;

    for (int i = 0; i < 3; i++) {
        assert_true(t.ask(limit_of("offender", 3), ++now, &state));
    }

    for (int i = 0; i < 100000; i++) {
        std::string other = "other" + std::to_string(i);

        assert_true(t.ask(limit_of(other, 3), ++now, &state));
        assert_true(state.admits);
    }

    assert_true(t.table.stats().evictions > 90000);
    assert_true(t.ask(limit_of("offender", 3), ++now, &state));
    assert_false(state.admits);
}

void those_whose_window_has_passed_go_first_and_are_no_loss(void **)
{
    Table t;
    LimitState state;

    for (int64_t i = 0; i < 100000; i++) {
        std::string client = "client" + std::to_string(i);

        /* an hour's window: a hundred are in it at a time */
        assert_true(t.ask(limit_of(client, 3), (i + 1) * 36 * kSecond, &state));
    }

    assert_int_equal(t.table.stats().evictions, 0);
}

void a_client_that_takes_all_memory_has_no_answer(void **)
{
    Table t;
    LimitState state;
    int64_t now = kSecond;
    int counted = 0;

    while (t.ask(limit_of("greedy", 1000000), ++now, &state)) {
        counted++;
    }

    assert_true(counted > 2000);
    assert_true(t.ask(limit_of("greedy", 1000), ++now, &state));
    assert_false(state.admits);
    assert_true(t.ask(limit_of("other", 1), ++now, &state));
    assert_true(state.admits);
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(
            soon_after_the_start_of_the_machine_buckets_count_as_ever),
        cmocka_unit_test(
            who_keeps_coming_is_not_driven_out_by_those_who_come_once),
        cmocka_unit_test(
            those_whose_window_has_passed_go_first_and_are_no_loss),
        cmocka_unit_test(a_client_that_takes_all_memory_has_no_answer),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
