/*
 * memory_table: the embedded store's table against the model, on random
 * requests. Prints TAP.
 *
 * SLIDING_LIMIT_MODEL_REQUESTS is how many requests to make, and
 * SLIDING_LIMIT_MODEL_SEED another seed; the same two make the same requests.
 *
 * From time to time a change is left half done, as by a process that is killed:
 * the table must repair itself, and nothing may be lost by it. And the clock is
 * set back: as the table's time goes on, every answer must be as if it had not.
 */

#include "store/pure/sl_memory_table.h"

#include <cinttypes>
#include <cstdlib>
#include <memory>
#include <string>

#include "sl_asked_table.h"
#include "sl_judge.h"
#include "sl_model.h"
#include "sl_schedule.h"

namespace {

using namespace sl_model;

constexpr size_t kMemorySize = 4 << 20;

struct Free {
    void operator()(void *memory) const { free(memory); }
};

class Test {
  public:
    Test(uint64_t requests, uint64_t seed)
        : memory_(aligned_alloc(64, kMemorySize)), requests_(requests),
          seed_(seed), random_(seed)
    {}

    bool run()
    {
        tap_.note(
            text("%" PRIu64 " requests, seed %" PRIu64, requests_, seed_));

        for (const Mix &mix : mixes()) {
            /* the model of a time that steps back, too */
            if (!mix.steps_back) {
                run(mix);
            }
        }

        tap_.ok(left_behind_ == 0, "what was given back can be used again");
        tap_.ok(steps_back_ > 0,
                text("the clock was set back %" PRIu64 " times", steps_back_));
        tap_.ok(requests_ < 20000 || tally_.has_all(),
                "there was some of everything");
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
    Random random_;

    /* How far the clock is behind the times of the round. */
    int64_t behind_ = 0;
    uint64_t steps_back_ = 0;

    void run(const Mix &mix)
    {
        uint64_t share = requests_ * static_cast<uint64_t>(mix.share) / 1000;
        uint64_t rounds = share / static_cast<uint64_t>(mix.requests) + 1;
        uint64_t before = tally_.requests;
        bool is_ok = true;

        for (uint64_t i = 0; i < rounds && is_ok; i++) {
            Round round = Planner(mix, kMemory, next_key_,
                                  Random(seed_ << 32 | ++rounds_))
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

        AskedTable asked(sl::MemoryTable(memory_.get(), kMemorySize));
        Judge judge(mix, &tally_);

        behind_ = 0;

        for (size_t i = 0; i < round.calls.size(); i++) {
            const Call &call = round.calls[i];

            if (rounds_ % 4 == 0 && i % 50 == 49) {
                asked.table().leave_half_done();
            }

            if (rounds_ % 3 == 0 && asked.told() > 0 && random_.chance(5)) {
                set_clock_back(&asked);
            }

            std::string wrong = judge.judge(call, asked.answer(call, behind_));

            if (!wrong.empty()) {
                report(&tap_, round, judge.wrong_key(), i, wrong);
                return false;
            }
        }

        check_cells(&asked, round);
        return true;
    }

    /* By a microsecond or by months; somebody looks before time goes on. */
    void set_clock_back(AskedTable *asked)
    {
        const sl::LimitQuery nobody{
            "nobody", "", 1, 1, 1, sl::Algorithm::kLog, 0, false, false, false};
        sl::LimitState state;

        behind_ += random_.between(1, int64_t{1} << random_.below(45));
        steps_back_++;
        asked->table().recall(nobody, asked->told() - behind_, sl::kAnyAge,
                              &state);
    }

    /* When all is past, a look at each key gives its blocks back. */
    void check_cells(AskedTable *asked, const Round &round)
    {
        for (const Key &key : round.keys) {
            Call look{};

            look.time = round.end;
            look.limits.push_back(key.limit);
            asked->answer(look, behind_);
        }

        sl::TableStats stats = asked->table().stats();

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
