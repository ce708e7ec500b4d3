/* A table of the embedded store to test with. */

#pragma once

#include "store/pure/sl_memory_table.h"

#include <cstdlib>
#include <memory>
#include <string_view>

#include "unit.h"

constexpr int64_t kSecond = 1000000;

struct Free {
    void operator()(void *memory) const { free(memory); }
};

/* A table with memory of its own. */
struct Table {
    std::unique_ptr<void, Free> memory;
    sl::MemoryTable table;

    explicit Table(size_t size = sl::MemoryTable::kSmallestMemory)
        : memory(aligned_alloc(64, size)), table(memory.get(), size)
    {
        const uint8_t secret[sl::MemoryTable::kSecretSize] = {};

        sl::MemoryTable::format(memory.get(), size, secret);
    }

    bool ask(const sl::LimitQuery &limit, int64_t now, sl::LimitState *state)
    {
        int64_t time;

        return ask(limit, now, state, &time);
    }

    bool ask(const sl::LimitQuery &limit, int64_t now, sl::LimitState *state,
             int64_t *time)
    {
        sl::Decided decided = sl::Decided::kNotYet;

        while (decided == sl::Decided::kNotYet) {
            decided = table.ask(&limit, 1, now, state, time);
        }

        return decided == sl::Decided::kYes;
    }

    /* What was counted then, as the state says, has cost something else. */
    bool settle(sl::LimitQuery limit, const sl::LimitState &state, int64_t time,
                int64_t true_cost, int64_t now)
    {
        limit.place = state.place;
        limit.true_cost = true_cost;

        return table.settle(&limit, 1, time, now) == sl::Decided::kYes;
    }

    void take_back(const sl::LimitQuery &limit, const sl::LimitState &state,
                   int64_t time)
    {
        assert_true(settle(limit, state, time, 0, time));
    }

    /* Another store, asked at that time, has refused at once. */
    void remember(const sl::LimitQuery &limit, int64_t wait, int64_t asked,
                  int64_t used = 5)
    {
        table.remember(limit, sl::LimitState{false, false, used, wait}, asked,
                       asked);
    }

    bool knows(const sl::LimitQuery &limit, int64_t now)
    {
        sl::LimitState state;

        return table.recall(limit, now, sl::kAnyAge, &state)
               == sl::Recalled::kRefusal;
    }

    /* How long the refusal still lasts. */
    int64_t wait(const sl::LimitQuery &limit, int64_t now)
    {
        sl::LimitState state;

        assert_true(table.recall(limit, now, sl::kAnyAge, &state)
                    == sl::Recalled::kRefusal);
        assert_false(state.admits);
        assert_false(state.is_counted);

        return state.wait_us;
    }
};

inline sl::LimitQuery limit_of(std::string_view key, int64_t max,
                               unsigned buckets = 0)
{
    return {
        "zone",  key,   3600 * kSecond,
        max,     1,     buckets ? sl::Algorithm::kBuckets : sl::Algorithm::kLog,
        buckets, false, false,
        false};
}
