/*
 * The script of lua/ in a real Redis, whose time is steered: when it asks for
 * it, it is told another one.
 */

#pragma once

#include <hiredis/hiredis.h>
#include <sys/time.h>

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "sl_judge.h"
#include "sl_model.h"
#include "sl_schedule.h"

namespace sl_model {

/* How the script may differ from the model. */
constexpr Store kRedis{false, true, 1000};

struct FreeReply {
    void operator()(redisReply *reply) const { freeReplyObject(reply); }
};

using Reply = std::unique_ptr<redisReply, FreeReply>;

class Redis {
  public:
    explicit Redis(redisContext *context) : context_(context)
    {
        throw_if_failed();

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
                throw_if_failed();
            }
        }
    }

    Reply read()
    {
        void *reply = nullptr;

        if (redisGetReply(context_, &reply) != REDIS_OK) {
            throw_if_failed();
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

    void throw_if_failed() const
    {
        if (context_ == nullptr) {
            throw std::runtime_error("no memory for a connection");
        }

        if (context_->err) {
            throw std::runtime_error(std::string("Redis: ") + context_->errstr);
        }
    }
};

/* The script with commands of ours in the place of some of Redis's. */
inline std::string steered(const std::string &script, bool keys_expire)
{
    static const char kCommands[] = R"(
local server, own = redis, {}
local redis = setmetatable({}, { __index = server })
local time = { string.match(table.remove(ARGV), '(%d+):(%d+)') }
local ms_now = time[1] * 1000 + math.floor(time[2] / 1000)
function own.TIME()
    return time
end
function own.PEXPIRE(key, ms)
    if keys_expire and server.call('EXISTS', key) == 1 then
        server.call('HSET', 'ends', key, ms_now + ms)
    end
    return server.call('PEXPIRE', key, ms + 3600000)
end
function own.SET(key, text, _, ms)
    server.call('SET', key, text)
    return own.PEXPIRE(key, ms)
end
function redis.call(command, ...)
    if own[command] then
        return own[command](...)
    end
    return server.call(command, ...)
end
)";

    static const char kExpiry[] = R"(
for i, ends in ipairs(server.call('HMGET', 'ends', unpack(KEYS))) do
    if ends and tonumber(ends) < ms_now then
        server.call('DEL', KEYS[i])
        server.call('HDEL', 'ends', KEYS[i])
    end
end
)";

    return std::string("local keys_expire = ")
           + (keys_expire ? "true" : "false") + kCommands
           + (keys_expire ? kExpiry : "") + script;
}

/* A request's id is a UUID that begins with a number: of the same order. */
inline std::string id_of(uint64_t number)
{
    return text("%08" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-8%03" PRIx64
                "-%012" PRIx64,
                number >> 32, number >> 16 & 0xffff, number & 0xffff,
                number % 4095, number % 0xffffffffffff);
}

/* That number; 0: it is nobody's, and -1: no request has such an id. */
inline int64_t number_of_id(const std::string &id)
{
    if (id.empty()) {
        return 0;
    }

    std::string digits = id.substr(0, 8)
                         + id.substr(std::min<size_t>(9, id.size()), 4)
                         + id.substr(std::min<size_t>(14, id.size()), 4);
    uint64_t number = strtoull(digits.c_str(), nullptr, 16);

    return id_of(number) == id ? static_cast<int64_t>(number) : -1;
}

/* The reply's numbers; none if it is something else. */
inline std::vector<int64_t> numbers_of(const redisReply &reply)
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
            const redisReply &element = *reply.element[i];

            if (element.type == REDIS_REPLY_STRING) {
                numbers.push_back(number_of_id({element.str, element.len}));
            } else if (element.type == REDIS_REPLY_INTEGER) {
                numbers.push_back(element.integer);
            } else {
                return {};
            }
        }
    }

    return numbers;
}

/* Of one of `count` requests with as many limits that were asked about at once,
 * as if it alone had been. */
inline std::vector<int64_t> numbers_of(const redisReply &reply, size_t n,
                                       size_t count, size_t limits)
{
    std::vector<int64_t> all = numbers_of(reply);
    size_t end = 3 * limits * count;

    if (count == 1 || (all.size() != end + 1 && all.size() != end * 4 / 3 + 1))
    {
        return count == 1 ? all : std::vector<int64_t>{};
    }

    auto from = [&](size_t first) {
        return all.begin() + static_cast<std::ptrdiff_t>(first);
    };
    std::vector<int64_t> numbers(from(3 * limits * n),
                                 from(3 * limits * (n + 1)));

    numbers.push_back(all[end]);

    if (all.size() > end + 1) {
        numbers.insert(numbers.end(), from(end + 1 + limits * n),
                       from(end + 1 + limits * (n + 1)));
    }

    return numbers;
}

inline std::string describe(const redisReply &reply)
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

/* What is counted in another way has another key. */
inline std::string name_of(const Limit &limit)
{
    Limit plain = limit;

    plain.cost = 1;
    plain.counts_refused = plain.dry_run = false;

    return kind_of(plain) + ":" + std::to_string(limit.key);
}

/* Where a client's ruling is noted once more. */
inline std::string index_of(const Limit &limit)
{
    return name_of(limit) + "!";
}

inline std::string kinds_of(const Call &call)
{
    std::string kinds;

    for (const Limit &limit : call.limits) {
        kinds += (kinds.empty() ? "" : "/") + kind_of(limit);
    }

    return kinds;
}

/* Window of each limit, and max. */
inline std::vector<std::string> numbers_of(const Call &call)
{
    std::vector<std::string> numbers;

    for (const Limit &limit : call.limits) {
        numbers.push_back(std::to_string(limit.window));
        numbers.push_back(
            std::to_string(call.settles ? limit.true_cost : limit.max));
    }

    return numbers;
}

/* What the script is told of calls: one of any kind, or several that are asked
 * about at once. */
inline std::vector<std::string> args_of(const Call *calls, size_t count)
{
    static const char *const kActs[] = {":look", ":forget", ":ban", ":max"};

    const Call &call = calls[0];
    std::vector<std::string> args{kinds_of(call)};
    std::vector<std::string> numbers = numbers_of(call);

    if (call.intervenes) {
        args.insert(args.begin(),
                    kActs[static_cast<size_t>(call.intervention.act)]);
        args.push_back(std::to_string(call.intervention.lasts));
        args.push_back(std::to_string(call.intervention.max));
    } else if (call.settles) {
        args.insert(args.begin(), ":settle");
        args.push_back(std::to_string(call.then));
        args.push_back(id_of(call.id));
    }

    args.insert(args.end(), numbers.begin(), numbers.end());

    for (size_t i = 0; i < count && !call.intervenes && !call.settles; i++) {
        args.push_back(id_of(calls[i].id));
    }

    args.push_back(
        text("%" PRId64 ":%" PRId64, call.time / kSecond, call.time % kSecond));

    return args;
}

/* Appends what asks the script, known by its hash. */
inline void append_calls(Redis *redis, const std::string &sha,
                         const Call *calls, size_t count = 1)
{
    std::vector<std::string> keys;
    std::vector<std::string> args = args_of(calls, count);

    for (size_t i = 0; i < count; i++) {
        for (const Limit &limit : calls[i].limits) {
            keys.push_back(name_of(limit));
        }
    }

    if (calls[0].intervenes) {
        keys.push_back(index_of(calls[0].limits[0]));
    }

    std::vector<std::string> words{"EVALSHA", sha, std::to_string(keys.size())};

    words.insert(words.end(), keys.begin(), keys.end());
    words.insert(words.end(), args.begin(), args.end());
    redis->append(words);
}

/* How many calls of the round, from `first` on, are asked about at once: those
 * of one moment whose limits are the same. */
inline size_t asked_at_once(const Round &round, size_t first)
{
    constexpr size_t kMostKeys = 32;
    const Call &call = round.calls[first];
    std::string kinds = kinds_of(call);
    size_t most = kMostKeys / call.limits.size();
    size_t count = 1;

    if (call.intervenes || call.settles || first % 4 == 0) {
        return 1;
    }

    while (count < most && first + count < round.calls.size()) {
        const Call &next = round.calls[first + count];

        if (next.intervenes || next.settles || next.time != call.time
            || kinds_of(next) != kinds || numbers_of(next) != numbers_of(call))
        {
            break;
        }

        count++;
    }

    return count;
}

/* Returns the script's hash. */
inline std::string load_script(Redis *redis, const std::string &script)
{
    Reply reply = redis->call({"SCRIPT", "LOAD", script});

    if (reply->type != REDIS_REPLY_STRING) {
        throw std::runtime_error(describe(*reply));
    }

    return std::string(reply->str, reply->len);
}

/* What a program prints; nothing if there is none. */
inline std::string output_of(const std::string &command)
{
    std::string output;
    char bytes[4096];
    FILE *pipe = popen(command.c_str(), "r");

    if (pipe == nullptr) {
        throw std::runtime_error(command + " cannot be run");
    }

    while (size_t size = fread(bytes, 1, sizeof(bytes), pipe)) {
        output.append(bytes, size);
    }

    if (pclose(pipe) != 0) {
        throw std::runtime_error(command + " has failed");
    }

    return output;
}

}  // namespace sl_model
