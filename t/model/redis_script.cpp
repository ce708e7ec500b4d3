/*
 * redis_script PORT SCRIPT: the Lua script in a real Redis against the model,
 * on random requests. Prints TAP.
 *
 * SLIDING_LIMIT_MODEL_REQUESTS is how many requests to make, and
 * SLIDING_LIMIT_MODEL_SEED another seed; the same two make the same requests.
 *
 * Time is steered: the script is told another one. Redis itself cannot be made
 * to believe in that time, so keys live an hour longer than they should. In
 * every fourth round a key is removed at the steered time at which Redis would
 * have let it expire; not where the clock steps back and requests are taken
 * back, as that may be early by the steered clock, though not by true time.
 *
 * What the script does not decide about at once is asked about once more, by a
 * loop around it: as the calls of a round are on their way all at a time,
 * nobody else could do it before the next one. Ordinary requests of the same
 * limits and the same moment are asked about at once.
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
    Test(Redis *redis, const std::string &window, const std::string &client,
         uint64_t requests, uint64_t seed)
        : redis_(*redis), requests_(requests),
          seed_(seed), ageless_{load_script(redis, steered(window, false)),
                                load_script(redis, steered(client, false))},
          mortal_{load_script(redis, steered(window, true)),
                  load_script(redis, steered(client, true))}
    {}

    bool run()
    {
        tap_.note(
            text("%" PRIu64 " requests, seed %" PRIu64, requests_, seed_));

        for (const Mix &mix : mixes()) {
            run(mix);
        }

        tap_.ok(without_ttl_ == 0, "every key has a time to live");
        tap_.ok(too_large_ == 0,
                "there is not much more than is needed: few buckets, and of "
                "refused requests only those that matter and some more");
        tap_.ok(left_behind_ == 0,
                "nothing stays behind when the windows have passed");

        int64_t again = number_at("asked again");
        int64_t alone = number_at("asked alone");

        tap_.note(text("asked again %" PRId64 " times; %" PRIu64
                       " were asked about with others, %" PRId64
                       " of them again alone",
                       again, together_, alone));
        tap_.ok(requests_ < 200000 || (again > 0 && alone > 0),
                "some were not decided at once");

        tap_.note(tally_.describe());

        /* a few requests cannot be of every kind */
        tap_.ok(requests_ < 20000
                    || (tally_.has_all() && tally_.has_rulings()
                        && tally_.has_settled()),
                "there was some of everything");

        return tap_.end();
    }

  private:
    Redis &redis_;
    Tap tap_;
    uint64_t requests_;
    uint64_t seed_;
    Scripts ageless_;
    Scripts mortal_;
    Tally tally_;
    int next_key_ = 1;
    uint64_t rounds_ = 0;
    uint64_t together_ = 0;
    int without_ttl_ = 0;
    int too_large_ = 0;
    int left_behind_ = 0;

    int64_t number_at(const char *key)
    {
        Reply reply = redis_.call({"GET", key});

        return reply->type == REDIS_REPLY_STRING ? atoll(reply->str) : 0;
    }

    void run(const Mix &mix)
    {
        uint64_t share = requests_ * static_cast<uint64_t>(mix.share) / 1000;
        uint64_t rounds = share / static_cast<uint64_t>(mix.requests) + 1;
        uint64_t before = tally_.requests;
        int failed = 0;
        Round sent;

        /* always one round ahead of Redis, so that both have work */
        for (uint64_t i = 0; i <= rounds; i++) {
            Round next;

            if (i < rounds && failed < 1) {
                next = Planner(mix, kRedis, next_key_,
                               Random(seed_ << 32 | ++rounds_))
                           .plan();
                next_key_ += mix.keys;
                send(next);
            }

            failed += !sent.calls.empty() && !judge(sent);
            sent = std::move(next);
        }

        tap_.ok(failed == 0, text("%s: %" PRIu64 " requests", mix.title,
                                  tally_.requests - before));
    }

    void send(const Round &round)
    {
        bool keys_expire = !(round.mix->steps_back && round.mix->take_backs)
                           && rounds_ % 4 == 1;
        const Scripts &scripts = keys_expire ? mortal_ : ageless_;

        for (size_t i = 0; i < round.calls.size();) {
            size_t count = asked_at_once(round, i);

            append_calls(&redis_, scripts, &round.calls[i], count);
            together_ += count > 1 ? count : 0;
            i += count;
        }

        std::vector<std::string> remains{"DEL", "ends"};

        for (const Key &key : round.keys) {
            remains.push_back(name_of(key.limit.key));
            remains.push_back(index_of(key.limit.key));
            redis_.append({"PTTL", name_of(key.limit.key)});
            redis_.append({"ZCARD", name_of(key.limit.key)});
            redis_.append({"STRLEN", name_of(key.limit.key)});
            append_call(&redis_, scripts, last_look(round, key));
            redis_.append({"EXISTS", name_of(key.limit.key)});
        }

        redis_.append(remains);
        redis_.flush();
    }

    static Call last_look(const Round &round, const Key &key)
    {
        Call call{};

        call.time = round.end;
        call.limits.push_back(key.limit);

        return call;
    }

    bool judge(const Round &round)
    {
        Judge judge(*round.mix, &tally_);
        std::string wrong;

        for (size_t i = 0; i < round.calls.size();) {
            Reply reply = redis_.read();
            size_t count = asked_at_once(round, i);

            for (size_t n = 0; n < count; n++, i++) {
                /* one difference makes others */
                if (wrong.empty()) {
                    wrong = judge_call(round, i, count,
                                       answer_to(*reply, n, count), &judge);
                }
            }
        }

        for (const Key &key : round.keys) {
            judge_remains(*round.mix, key);
        }

        redis_.read();
        return wrong.empty();
    }

    /* Of several that were asked about at once each has its own reply. */
    static const redisReply &answer_to(const redisReply &reply, size_t n,
                                       size_t count)
    {
        bool is_of_all = count > 1 && reply.type == REDIS_REPLY_ARRAY
                         && reply.elements == count;

        return is_of_all ? *reply.element[n] : reply;
    }

    std::string judge_call(const Round &round, size_t i, size_t count,
                           const redisReply &reply, Judge *judge)
    {
        const Call &call = round.calls[i];
        std::string wrong = judge->judge(call, numbers_of(reply));

        if (!wrong.empty()) {
            report(&tap_, round, judge->wrong_key(), i, wrong);
            tap_.note("  but Redis says " + describe(reply)
                      + text(" to all of %zu limits of one of %zu requests",
                             call.limits.size(), count));
        }

        return wrong;
    }

    /* What Redis keeps when the round is over, and when all is long past. */
    void judge_remains(const Mix &mix, const Key &key)
    {
        const Limit &limit = key.limit;
        int64_t ttl = redis_.read()->integer;

        /* one of these is an error, and 0 */
        int64_t entries = redis_.read()->integer;
        int64_t bytes = redis_.read()->integer;

        redis_.read();
        left_behind_ += redis_.read()->integer != 0;

        without_ttl_ += ttl == -1 || (entries + bytes > 0 && ttl < 0);

        if (limit.has_buckets()) {
            too_large_ += bytes > most_bytes_of_buckets(limit);
        } else if (!limit.counts_refused || !key.has_tiers) {
            int64_t most = most_entries(mix, key);

            too_large_ += entries > most || bytes > most_bytes_of_log(most);
        }
    }

    /* With a ruling or some that have ended at its end. */
    static constexpr int64_t kMostBytesOfRulings = 20 * 24;

    static int64_t most_bytes_of_buckets(const Limit &limit)
    {
        constexpr int64_t kHead = 43;
        constexpr int64_t kBucket = 16;

        return kHead + kBucket * limit.buckets + kMostBytesOfRulings;
    }

    /* Of a packed one, which may have room for some more. */
    static int64_t most_bytes_of_log(int64_t entries)
    {
        constexpr int64_t kHead = 60;
        constexpr int64_t kEntry = 40;

        return kHead + kEntry * (entries + entries / 2) + kMostBytesOfRulings;
    }

    /* What a log may have in it, with its sum and a ruling, though some of that
     * was not needed any more. */
    static int64_t most_entries(const Mix &mix, const Key &key)
    {
        constexpr int64_t kMore = 256;
        auto matter = static_cast<int64_t>(key.matter);
        int64_t most = key.limit.max;

        /* what has cost more is counted besides, and may go beyond max */
        if (mix.settles) {
            return matter + matter / 4 + static_cast<int64_t>(key.backlog)
                   + kMore;
        }

        /* where max varies it may be twice as much */
        if (!key.limit.counts_refused) {
            return 2 * most + static_cast<int64_t>(key.backlog) + kMore;
        }

        return (mix.costs ? matter + matter / 4 : 3 * most) + kMore;
    }
};

}  // namespace

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: redis_script PORT WINDOW CLIENT\n");
        return 2;
    }

    try {
        Redis redis(redisConnect("127.0.0.1", atoi(argv[1])));
        Test test(
            &redis, contents_of(argv[2]), contents_of(argv[3]),
            number_from_environment("SLIDING_LIMIT_MODEL_REQUESTS", 2000000),
            number_from_environment("SLIDING_LIMIT_MODEL_SEED", 1));

        return test.run() ? 0 : 1;
    } catch (const std::exception &e) {
        printf("Bail out! %s\n", e.what());
        return 1;
    }
}
