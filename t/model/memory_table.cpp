/*
 * memory_table: the embedded store's table against the model, on random
 * requests. Prints TAP.
 *
 * SLIDING_LIMIT_MODEL_REQUESTS is how many requests to make, and
 * SLIDING_LIMIT_MODEL_SEED another seed; the same two make the same requests.
 *
 * From time to time a change is left half done, as by a process that is killed:
 * the table must repair itself, and nothing may be lost by it.
 */

#include "sl_memory_table.h"

#include <cinttypes>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "sl_judge.h"
#include "sl_model.h"
#include "sl_queries.h"
#include "sl_schedule.h"

namespace {

using namespace sl_model;

const Store kMemory{true, 0, 0};

constexpr size_t kMemorySize = 4 << 20;

struct Free {
    void operator()(void *memory) const { free(memory); }
};

class Test {
  public:
    Test(uint64_t requests, uint64_t seed)
        : memory_(aligned_alloc(64, kMemorySize)), requests_(requests),
          seed_(seed)
    {}

    bool run()
    {
        tap_.note(
            text("%" PRIu64 " requests, seed %" PRIu64, requests_, seed_));

        for (const Mix &mix : mixes()) {
            /* this store's clock does not */
            if (!mix.steps_back) {
                run(mix);
            }
        }

        tap_.ok(left_behind_ == 0, "what was given back can be used again");
        tap_.note(tally_.describe());

        return tap_.end();
    }

  private:
    std::unique_ptr<void, Free> memory_;
    Tap tap_;
    Tally tally_;
    uint64_t requests_;
    uint64_t seed_;
    int next_key_ = 1;
    uint64_t rounds_ = 0;
    int left_behind_ = 0;

    void run(const Mix &mix)
    {
        uint64_t share = requests_ * static_cast<uint64_t>(mix.share) / 1000;
        uint64_t rounds = share / static_cast<uint64_t>(mix.requests) + 1;
        uint64_t before = tally_.requests;
        bool is_ok = true;

        for (uint64_t i = 0; i < rounds && is_ok; i++) {
            Round round =
                Planner(mix, kMemory, next_key_, seed_ << 32 | ++rounds_)
                    .plan();

            next_key_ += mix.keys;
            is_ok = run(mix, round);
        }

        tap_.ok(is_ok, text("%s: %" PRIu64 " requests", mix.title,
                            tally_.requests - before));
    }

    bool run(const Mix &mix, const Round &round)
    {
        uint8_t secret[sl::MemoryTable::kSecretSize] = {};

        sl::MemoryTable::format(memory_.get(), kMemorySize, secret);

        sl::MemoryTable table(memory_.get());
        Judge judge(mix, &tally_);

        for (size_t i = 0; i < round.calls.size(); i++) {
            const Call &call = round.calls[i];

            if (rounds_ % 4 == 0 && i % 50 == 49) {
                table.leave_half_done();
            }

            std::string wrong = judge.judge(call, answer(&table, call));

            if (!wrong.empty()) {
                report(&tap_, round, judge.wrong_key(), i, wrong);
                return false;
            }
        }

        check_cells(&table, round);
        return true;
    }

    std::vector<int64_t> answer(sl::MemoryTable *table, const Call &call)
    {
        Queries queries(call.limits);
        std::vector<int64_t> numbers;

        if (call.takes_back) {
            table->take_back(queries.data(), queries.size(), call.then);
            /* it does not say how many */
            return {call.taken_back.at_most};
        }

        std::vector<sl::LimitState> states(queries.size());
        int64_t time;

        if (!table->ask(queries.data(), queries.size(), call.time,
                        states.data(), &time))
        {
            return {};
        }

        for (const sl::LimitState &state : states) {
            numbers.push_back(!state.admits ? 0 : state.is_counted ? 2 : 1);
            numbers.push_back(state.used);
            numbers.push_back(state.wait_us);
        }

        numbers.push_back(time);
        return numbers;
    }

    /* When all is past, a look at each key gives its blocks back. */
    void check_cells(sl::MemoryTable *table, const Round &round)
    {
        for (const Key &key : round.keys) {
            Call look{};

            look.time = round.end;
            look.limits.push_back(key.limit);
            answer(table, look);
        }

        sl::TableStats stats = table->stats();

        left_behind_ += stats.free_cells + stats.keys != stats.cells;
    }
};

}  // namespace

int main()
{
    Test test(number_from_environment("SLIDING_LIMIT_MODEL_REQUESTS", 2000000),
              number_from_environment("SLIDING_LIMIT_MODEL_SEED", 1));

    return test.run() ? 0 : 1;
}
