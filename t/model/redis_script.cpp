/*
 * redis_script PORT SCRIPT: the Lua script in a real Redis against the model,
 * on random requests. Prints TAP.
 *
 * SLIDING_LIMIT_MODEL_REQUESTS is how many requests to make, and
 * SLIDING_LIMIT_MODEL_SEED another seed; the same two make the same requests.
 *
 * Time is steered: the line of the script that asks for it is replaced. Redis
 * itself cannot be made to believe in that time, so keys live an hour longer
 * than they should. In every fourth round a key is removed at the steered time
 * at which Redis would have let it expire; not where the clock steps back and
 * requests are taken back, as that may be early by the steered clock, though
 * not by true time.
 *
 * What the script does not decide about at once is asked about once more, by a
 * loop around it: as the calls of a round are on their way all at a time,
 * nobody else could do it before the next one.
 */

#include <hiredis/hiredis.h>
#include <sys/time.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sl_judge.h"
#include "sl_model.h"
#include "sl_schedule.h"

namespace {

using namespace sl_model;

const Store kRedis{false, 3, 128, int64_t{1} << 50, 256, 8};

struct FreeReply {
    void operator()(redisReply *reply) const { freeReplyObject(reply); }
};

using Reply = std::unique_ptr<redisReply, FreeReply>;

class Redis {
  public:
    explicit Redis(int port) : context_(redisConnect("127.0.0.1", port))
    {
        check();

        timeval timeout{60, 0};
        redisSetTimeout(context_, timeout);
    }

    ~Redis() { redisFree(context_); }

    Redis(const Redis &) = delete;
    Redis &operator=(const Redis &) = delete;

    void append(const std::vector<std::string> &args)
    {
        std::vector<const char *> argv;
        std::vector<size_t> sizes;

        for (const std::string &arg : args) {
            argv.push_back(arg.data());
            sizes.push_back(arg.size());
        }

        redisAppendCommandArgv(context_, static_cast<int>(argv.size()),
                               argv.data(), sizes.data());
    }

    /* Sends what was appended: Redis can work while we do. */
    void flush()
    {
        for (int done = 0; !done;) {
            if (redisBufferWrite(context_, &done) != REDIS_OK) {
                check();
            }
        }
    }

    Reply read()
    {
        void *reply = nullptr;

        if (redisGetReply(context_, &reply) != REDIS_OK) {
            check();
        }

        return Reply(static_cast<redisReply *>(reply));
    }

    Reply call(const std::vector<std::string> &args)
    {
        append(args);
        return read();
    }

  private:
    redisContext *context_;

    void check() const
    {
        if (context_ == nullptr) {
            throw std::runtime_error("no memory for a connection");
        }

        if (context_->err) {
            throw std::runtime_error(std::string("Redis: ") + context_->errstr);
        }
    }
};

void replace_only(std::string *text, const std::string &what,
                  const std::string &with)
{
    size_t at = text->find(what);

    if (at == std::string::npos
        || text->find(what, at + 1) != std::string::npos) {
        throw std::runtime_error("not once in the script: " + what);
    }

    text->replace(at, what.size(), with);
}

std::string steered(std::string script, bool keys_expire)
{
    static const char kTime[] = R"(
local time = { string.match(table.remove(ARGV), '(%d+):(%d+)') }
local function live_on(key, ms)
    return redis.call('PEXPIRE', key, ms + 3600000)
end
)";

    static const char kTimeAndExpiry[] = R"(
local time = { string.match(table.remove(ARGV), '(%d+):(%d+)') }
local ms_now = time[1] * 1000 + math.floor(time[2] / 1000)
for i, ends in ipairs(redis.call('HMGET', 'ends', unpack(KEYS))) do
    if ends and tonumber(ends) < ms_now then
        redis.call('DEL', KEYS[i])
        redis.call('HDEL', 'ends', KEYS[i])
    end
end
local function live_on(key, ms)
    redis.call('HSET', 'ends', key, ms_now + ms)
    return redis.call('PEXPIRE', key, ms + 3600000)
end
)";

    static const char kUntilDecided[] = R"(
local answer = decide()
while type(answer) == 'table' and answer[1] == -1 do
    redis.call('INCR', 'asked again')
    answer = decide()
end
return answer
)";

    replace_only(&script, "redis.call('PEXPIRE', ", "live_on(");
    replace_only(&script, "\nlocal time = redis.call('TIME')\n", "\n");

    return (keys_expire ? kTimeAndExpiry : kTime)
           + ("local function decide()\n" + script) + "\nend\n" + kUntilDecided;
}

/* The reply's numbers; none if it is something else. */
std::vector<int64_t> numbers_of(const redisReply &reply)
{
    std::vector<int64_t> numbers;

    if (reply.type == REDIS_REPLY_INTEGER) {
        numbers.push_back(reply.integer);
    }

    /* eight bytes each, the lowest first */
    if (reply.type == REDIS_REPLY_STRING) {
        for (size_t i = 0; i + 8 <= reply.len; i += 8) {
            uint64_t number = 0;

            for (size_t byte = 8; byte > 0; byte--) {
                number =
                    number << 8 | static_cast<uint8_t>(reply.str[i + byte - 1]);
            }

            numbers.push_back(static_cast<int64_t>(number));
        }
    }

    if (reply.type == REDIS_REPLY_ARRAY) {
        for (size_t i = 0; i < reply.elements; i++) {
            if (reply.element[i]->type != REDIS_REPLY_INTEGER) {
                return {};
            }

            numbers.push_back(reply.element[i]->integer);
        }
    }

    return numbers;
}

std::string describe(const redisReply &reply)
{
    if (reply.type == REDIS_REPLY_ERROR) {
        return std::string(reply.str, reply.len);
    }

    std::string line;

    for (int64_t number : numbers_of(reply)) {
        line += (line.empty() ? "" : " ") + std::to_string(number);
    }

    return line.empty() ? "no numbers" : line;
}

std::string name_of(int key)
{
    return "key" + std::to_string(key);
}

/* One that may be asked in the short form. */
bool is_ordinary(const Call &call)
{
    return !call.takes_back
           && std::all_of(call.limits.begin(), call.limits.end(),
                          [](const Limit &limit) {
                              return limit.cost == 1 && limit.buckets == 0
                                     && !limit.counts_refused && !limit.dry_run;
                          });
}

void add_short_form(const Call &call, std::vector<std::string> *args)
{
    args->push_back("/" + std::to_string(call.limits.size()));

    for (const Limit &limit : call.limits) {
        args->push_back(std::to_string(limit.window));
        args->push_back(std::to_string(limit.max));
    }

    args->push_back("id-" + std::to_string(call.id));
}

void add_long_form(const Call &call, std::vector<std::string> *args)
{
    args->push_back(call.takes_back ? std::to_string(call.then) : "");
    args->push_back("id-" + std::to_string(call.id));

    for (const Limit &limit : call.limits) {
        args->push_back(std::to_string(limit.window));
        args->push_back(std::to_string(limit.max));
        args->push_back(std::to_string(limit.cost));
        args->push_back(std::to_string(limit.buckets));
        args->push_back(std::string(limit.counts_refused ? "d" : "")
                        + (limit.dry_run ? "n" : ""));
    }
}

class Test {
  public:
    Test(Redis *redis, const std::string &script, uint64_t requests,
         uint64_t seed)
        : redis_(*redis), requests_(requests), seed_(seed),
          ageless_(load(steered(script, false))),
          mortal_(load(steered(script, true)))
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
                "there are few buckets, and of refused requests only those "
                "that matter and some more");
        tap_.ok(left_behind_ == 0,
                "nothing stays behind when the windows have passed");

        Reply asked_again = redis_.call({"GET", "asked again"});

        bool were_any = asked_again->type == REDIS_REPLY_STRING;

        tap_.note(
            text("asked again %s times", were_any ? asked_again->str : "no"));
        tap_.ok(requests_ < 200000 || were_any,
                "some were not decided at once");

        tap_.note(tally_.describe());

        /* a few requests cannot be of every kind */
        tap_.ok(requests_ < 20000 || tally_.has_all(),
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
    int without_ttl_ = 0;
    int too_large_ = 0;
    int left_behind_ = 0;

    std::string load(const std::string &script)
    {
        Reply reply = redis_.call({"SCRIPT", "LOAD", script});

        if (reply->type != REDIS_REPLY_STRING) {
            throw std::runtime_error(describe(*reply));
        }

        return std::string(reply->str, reply->len);
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
                next = Planner(mix, kRedis, next_key_, seed_ << 32 | ++rounds_)
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
        const std::string &sha = keys_expire ? mortal_ : ageless_;

        for (const Call &call : round.calls) {
            send(sha, call);
        }

        std::vector<std::string> remains{"DEL", "ends"};

        for (const Key &key : round.keys) {
            remains.push_back(name_of(key.limit.key));
            redis_.append({"PTTL", name_of(key.limit.key)});
            redis_.append({"ZCARD", name_of(key.limit.key)});
            send(sha, last_look(round, key));
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

    void send(const std::string &sha, const Call &call)
    {
        std::vector<std::string> args{"EVALSHA", sha,
                                      std::to_string(call.limits.size())};

        for (const Limit &limit : call.limits) {
            args.push_back(name_of(limit.key));
        }

        is_ordinary(call) && call.id % 2 ? add_short_form(call, &args)
                                         : add_long_form(call, &args);

        args.push_back(text("%" PRId64 ":%" PRId64, call.time / kSecond,
                            call.time % kSecond));
        redis_.append(args);
    }

    bool judge(const Round &round)
    {
        Judge judge(*round.mix, &tally_);
        std::string wrong;

        for (size_t i = 0; i < round.calls.size(); i++) {
            Reply reply = redis_.read();

            /* one difference makes others */
            if (wrong.empty()) {
                wrong = judge.judge(round.calls[i], numbers_of(*reply));

                if (!wrong.empty()) {
                    report(&tap_, round, judge.wrong_key(), i, wrong);
                    tap_.note("  but Redis says " + describe(*reply)
                              + " to all of "
                              + std::to_string(round.calls[i].limits.size())
                              + " limits");
                }
            }
        }

        for (const Key &key : round.keys) {
            judge_remains(*round.mix, key);
        }

        redis_.read();
        return wrong.empty();
    }

    /* What Redis keeps when the round is over, and when all is long past. */
    void judge_remains(const Mix &mix, const Key &key)
    {
        const Limit &limit = key.limit;
        int64_t ttl = redis_.read()->integer;
        int64_t size = redis_.read()->integer;

        redis_.read();
        left_behind_ += redis_.read()->integer != 0;

        without_ttl_ += ttl == -1 || (size > 0 && ttl < 0);

        if (limit.buckets > 0 && !mix.steps_back) {
            too_large_ += size > limit.buckets + 1;
        }

        if (limit.buckets == 0 && limit.counts_refused && !key.has_tiers) {
            auto matter = static_cast<int64_t>(key.matter);

            too_large_ +=
                size > (mix.costs ? matter + matter / 4 : 3 * limit.max) + 256;
        }
    }
};

std::string contents_of(const char *path)
{
    std::ifstream file(path);
    std::ostringstream contents;

    if (!(contents << file.rdbuf())) {
        throw std::runtime_error(std::string(path) + " cannot be read");
    }

    return contents.str();
}

}  // namespace

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: redis_script PORT SCRIPT\n");
        return 2;
    }

    try {
        Redis redis(atoi(argv[1]));
        Test test(
            &redis, contents_of(argv[2]),
            number_from_environment("SLIDING_LIMIT_MODEL_REQUESTS", 2000000),
            number_from_environment("SLIDING_LIMIT_MODEL_SEED", 1));

        return test.run() ? 0 : 1;
    } catch (const std::exception &e) {
        printf("Bail out! %s\n", e.what());
        return 1;
    }
}
