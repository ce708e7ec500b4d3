/*
 * deny_cache: remembered refusals against the model, on random requests. Prints
 * TAP.
 *
 * SLIDING_LIMIT_MODEL_REQUESTS is how many requests to make, and
 * SLIDING_LIMIT_MODEL_SEED another seed; the same two make the same requests.
 *
 * The model is the store. Before it is asked, refusals are recalled, as by a
 * worker: whatever is recalled, the model must refuse, too. To be refused
 * changes nothing in the model where refused requests do not count, so it goes
 * on as if it had not been asked.
 *
 * When an operator steps in, all that was asked before is void.
 *
 * Where the clock steps back, other buckets begin: then what was remembered of
 * the old ones may last up to the width of one longer.
 */

#include <cinttypes>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "sl_judge.h"
#include "sl_model.h"
#include "sl_queries.h"
#include "sl_schedule.h"
#include "store/pure/sl_memory_table.h"

namespace {

using namespace sl_model;

/* As exact as the model itself. */
const Store kModel{false, true, INT64_MAX};

constexpr size_t kMemorySize = 1 << 20;

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

        for (Mix mix : mixes()) {
            /* it is not used where requests are taken back (see the last
             * test), nor where every refusal counts */
            mix.take_backs = false;

            if (!mix.hammers) {
                run(mix);
            }
        }

        tap_.ok(recalled_ > requests_ / 20 && asked_again_ > 0,
                text("%" PRIu64 " refusals were recalled, %" PRIu64
                     " were not known any more",
                     recalled_, asked_again_));

        check_that_it_matters();

        return tap_.end();
    }

  private:
    std::unique_ptr<void, Free> memory_;
    Tap tap_;
    uint64_t requests_;
    uint64_t seed_;
    Random random_;
    int next_key_ = 1;
    uint64_t rounds_ = 0;
    uint64_t recalled_ = 0;
    uint64_t asked_again_ = 0;

    /* Of the worker, which does not follow the store's when that steps back. */
    int64_t clock_ = 0;
    int64_t void_until_ = 0;
    int64_t stores_clock_ = 0;

    Round plan(const Mix &mix)
    {
        int first_key = next_key_;

        next_key_ += mix.keys;

        return Planner(mix, kModel, first_key, Random(seed_ << 32 | ++rounds_))
            .plan();
    }

    void run(const Mix &mix)
    {
        uint64_t share = requests_ * static_cast<uint64_t>(mix.share) / 1000;
        uint64_t rounds = share / static_cast<uint64_t>(mix.requests) + 1;
        uint64_t before = recalled_;
        bool is_ok = true;

        for (uint64_t i = 0; i < rounds && is_ok; i++) {
            Round round = plan(mix);

            is_ok = wrong_refusals(round, true) == 0;
        }

        tap_.ok(is_ok, text("%s: %" PRIu64 " refusals recalled", mix.title,
                            recalled_ - before));
    }

    /* Where requests are taken back, the rule not to use it there is needed. */
    void check_that_it_matters()
    {
        size_t wrong = 0;

        for (Mix mix : mixes()) {
            for (int i = 0; i < 20 && mix.take_backs && !mix.rulings; i++) {
                wrong += wrong_refusals(plan(mix), false);
            }
        }

        tap_.ok(wrong > 0, "where requests are taken back it would be wrong");
    }

    /* Requests that the cache refuses and the model does not. */
    size_t wrong_refusals(const Round &round, bool is_reported)
    {
        uint8_t secret[sl::MemoryTable::kSecretSize] = {};
        size_t wrong = 0;

        sl::MemoryTable::format(memory_.get(), kMemorySize, secret);

        sl::MemoryTable table(memory_.get(), kMemorySize);

        clock_ = kSecond;
        void_until_ = 0;
        stores_clock_ = round.calls[0].time;

        for (size_t n = 0; n < round.calls.size(); n++) {
            const Call &call = round.calls[n];

            pass_time(call.time);

            if (call.intervenes) {
                void_until_ = clock_;
            }

            if (call.settles || call.intervenes) {
                continue;
            }

            std::string difference =
                compare(&table, call, round.mix->steps_back);

            if (!difference.empty()) {
                wrong++;

                if (is_reported) {
                    report(&tap_, round, call.limits[0].key, n, difference);
                    return wrong;
                }
            }
        }

        return wrong;
    }

    void pass_time(int64_t now)
    {
        clock_ += std::max<int64_t>(now - stores_clock_, 0);
        stores_clock_ = now;
    }

    std::string compare(sl::MemoryTable *table, const Call &call,
                        bool steps_back)
    {
        Queries queries(call.limits);
        int64_t max_age = random_.chance(5) ? 0 : sl::kAnyAge;
        bool is_known = false;

        /* a limit that counts what it refuses has to be asked every time */
        for (const Limit &limit : call.limits) {
            if (limit.counts_refused) {
                return {};
            }
        }

        for (size_t i = 0; i < queries.size(); i++) {
            sl::LimitState state;

            if (call.limits[i].dry_run
                || table->recall(queries[i], clock_, max_age, &state,
                                 void_until_)
                       != sl::Recalled::kRefusal)
            {
                continue;
            }

            is_known = true;
            recalled_++;

            const Limit &limit = call.limits[i];
            const Answer &answer = call.answers[i];
            int64_t may_be_late =
                steps_back && limit.buckets > 0 ? limit.width() : 0;

            /* what was ruled then may have ended, while the refusal holds */
            if ((answer.admits == 3 && !state.is_banned)
                || (answer.ruled_max != 0
                    && state.ruled_max != answer.ruled_max))
            {
                return "another ruling than the model knows";
            }

            if (!answer.is_refusal() && state.wait_us > may_be_late) {
                return "refused, but the model would admit it";
            }

            if (answer.is_refusal()
                && state.wait_us > answer.wait + may_be_late) {
                return "refused for longer than the model says";
            }
        }

        if (!is_known) {
            remember(table, call, queries);
        }

        return {};
    }

    void remember(sl::MemoryTable *table, const Call &call,
                  const Queries &queries)
    {
        /* the store looks at its clock after it was asked */
        int64_t asked = clock_ - (random_.chance(50) ? random_.below(1000) : 0);

        for (size_t i = 0; i < queries.size(); i++) {
            const Answer &answer = call.answers[i];

            if (answer.is_refusal() && !call.limits[i].dry_run) {
                asked_again_++;
                table->remember(queries[i],
                                {false, false, answer.used, answer.wait,
                                 sl::kNoPlace, answer.ruled_max,
                                 answer.admits == 3},
                                asked, clock_);
            }
        }
    }
};

}  // namespace

int main()
{
    Test test(number_from_environment("SLIDING_LIMIT_MODEL_REQUESTS", 2000000),
              number_from_environment("SLIDING_LIMIT_MODEL_SEED", 1));

    return test.run() ? 0 : 1;
}
