/*
 * redis_script PORT ASSEMBLE: the Lua script in a real Redis against the model,
 * on random requests. Prints TAP.
 *
 * SLIDING_LIMIT_MODEL_REQUESTS is how many requests to make, and
 * SLIDING_LIMIT_MODEL_SEED another seed; the same two make the same requests.
 *
 * Time is steered: the script is told another one. Redis itself cannot be made
 * to believe in that time, so keys live an hour longer than they should. In
 * every second round a key is removed at the steered time at which Redis would
 * have let it expire; not where the clock steps back, as that may be early by
 * the steered clock, though not by true time.
 *
 * Requests of the same limits and the same moment are asked about at once.
 */

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sl_judge.h"
#include "sl_model.h"
#include "sl_schedule.h"
#include "sl_script.h"

namespace {

using namespace sl_model;

class Test {
  public:
    Test(Redis *redis, const std::string &script, uint64_t requests,
         uint64_t seed)
        : redis_(*redis), requests_(requests), seed_(seed),
          ageless_(load_script(redis, steered(script, false))),
          mortal_(load_script(redis, steered(script, true)))
    {}

    bool run()
    {
        tap_.note(
            text("%" PRIu64 " requests, seed %" PRIu64, requests_, seed_));

        for (const Mix &mix : mixes()) {
            run(mix);
        }

        tap_.ok(without_ttl_ == 0, "every key has a time to live");
        tap_.ok(too_large_ == 0, "there is not much more than is needed");
        tap_.ok(left_behind_ == 0,
                "nothing stays behind when the windows have passed");
        tap_.note(tally_.describe());
        tap_.note(text("%" PRIu64 " were asked about with others", together_));

        /* a few requests cannot be of every kind */
        tap_.ok(
            requests_ < 20000
                || (tally_.has_all() && tally_.steps_back > 0 && together_ > 0),
            "there was some of everything");

        return tap_.end();
    }

  private:
    Redis &redis_;
    Tap tap_;
    uint64_t requests_;
    uint64_t seed_;
    std::string ageless_;
    std::string mortal_;
    Tally tally_;
    int next_key_ = 1;
    uint64_t rounds_ = 0;
    uint64_t together_ = 0;
    int without_ttl_ = 0;
    int too_large_ = 0;
    int left_behind_ = 0;

    void run(const Mix &mix)
    {
        uint64_t share = requests_ * static_cast<uint64_t>(mix.share) / 1000;
        uint64_t rounds = share / static_cast<uint64_t>(mix.requests) + 1;
        uint64_t before = tally_.requests;
        bool is_ok = true;
        Round sent;

        /* always one round ahead of Redis, so that both have work */
        for (uint64_t i = 0; i <= rounds; i++) {
            Round next;

            if (i < rounds && is_ok) {
                next = Planner(mix, kRedis, next_key_,
                               Random(seed_ << 32 | ++rounds_))
                           .plan();
                next_key_ += mix.keys;
                send(next);
            }

            is_ok = (sent.calls.empty() || judge(sent)) && is_ok;
            sent = std::move(next);
        }

        tap_.ok(is_ok, text("%s: %" PRIu64 " requests", mix.title,
                            tally_.requests - before));
    }

    static bool keys_expire(const Round &round)
    {
        return !round.mix->steps_back && round.end % 2 == 1;
    }

    void send(const Round &round)
    {
        const std::string &sha = keys_expire(round) ? mortal_ : ageless_;
        std::vector<std::string> remains{"DEL", "ends"};

        for (size_t i = 0; i < round.calls.size();) {
            size_t count = asked_at_once(round, i);

            append_calls(&redis_, sha, &round.calls[i], count);
            together_ += count > 1 ? count : 0;
            i += count;
        }

        for (const Key &key : round.keys) {
            std::string name = name_of(key.limit);
            Call last{};

            /* keys live up to a second longer than they have to */
            last.time = round.end + 2 * kSecond;
            last.limits.push_back(key.limit);

            remains.push_back(name);
            remains.push_back(index_of(key.limit));
            redis_.append({"PTTL", name});
            redis_.append({key.limit.is_log() ? "ZCARD" : "STRLEN", name});
            append_calls(&redis_, sha, &last);
            redis_.append({"EXISTS", name});
        }

        redis_.append(remains);
        redis_.flush();
    }

    bool judge(const Round &round)
    {
        Judge judge(*round.mix, &tally_);
        std::string wrong;

        for (size_t i = 0; i < round.calls.size();) {
            Reply reply = redis_.read();
            size_t count = asked_at_once(round, i);

            for (size_t n = 0; n < count; n++, i++) {
                const Call &call = round.calls[i];
                auto numbers = numbers_of(*reply, n, count, call.limits.size());

                /* one difference makes others */
                if (wrong.empty() && reply->type != REDIS_REPLY_ERROR) {
                    wrong = judge.judge(call, numbers);
                } else if (wrong.empty()) {
                    wrong = "an error";
                } else {
                    continue;
                }

                if (!wrong.empty()) {
                    report(&tap_, round, judge.wrong_key(), i, wrong);
                    tap_.note("  but Redis says " + describe(*reply)
                              + text(" to request %zu of %zu", n + 1, count));
                }
            }
        }

        for (const Key &key : round.keys) {
            judge_remains(round, key);
        }

        redis_.read();
        return wrong.empty();
    }

    /* What Redis keeps when the round is over, and, where its keys expire, when
     * all is long past. */
    void judge_remains(const Round &round, const Key &key)
    {
        int64_t ttl = redis_.read()->integer;
        int64_t size = redis_.read()->integer;

        redis_.read();
        left_behind_ += redis_.read()->integer != 0 && keys_expire(round);
        without_ttl_ += ttl == -1 || (size > 0 && ttl < 0);
        too_large_ += size > largest(round, key);
    }

    /* In a packed log what has left goes when it is more than what has not; and
     * up to 1,000 units more were dropped since. */
    static int64_t largest(const Round &round, const Key &key)
    {
        constexpr int64_t kRuling = 24;

        switch (key.limit.algorithm) {
        case Algorithm::kLog:
            return 1 + (round.may_lag ? key.counts.all : key.size);

        case Algorithm::kPacked:
            return 32 + kRuling + 8 * (2 * key.counts.most + 65);

        case Algorithm::kBuckets:
            break;
        }

        return 44 + kRuling + 16 * key.limit.buckets;
    }
};

}  // namespace

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: redis_script PORT ASSEMBLE\n");
        return 2;
    }

    try {
        Redis redis(redisConnect("127.0.0.1", atoi(argv[1])));
        Test test(
            &redis, output_of(std::string("sh ") + argv[2]),
            number_from_environment("SLIDING_LIMIT_MODEL_REQUESTS", 2000000),
            number_from_environment("SLIDING_LIMIT_MODEL_SEED", 1));

        return test.run() ? 0 : 1;
    } catch (const std::exception &e) {
        printf("Bail out! %s\n", e.what());
        return 1;
    }
}
