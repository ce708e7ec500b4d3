/*
 * The scripts of lua/ in a real Redis, whose time is steered: when they ask for
 * it, they are told another one.
 */

#pragma once

#include <hiredis/hiredis.h>
#include <sys/time.h>

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "sl_judge.h"
#include "sl_model.h"
#include "sl_schedule.h"

namespace sl_model {

/* How the script may differ from the model. */
constexpr Store kRedis{false, 3, 128, int64_t{1} << 50, 256, 8, true};

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
    if keys_expire then
        server.call('HSET', 'ends', key, ms_now + ms)
    end
    return server.call('PEXPIRE', key, ms + 3600000)
end
function own.SET(key, text, _, ms)
    server.call('SET', key, text)
    return ms and own.PEXPIRE(key, ms)
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

    /* of several requests those that are not decided about are asked about
     * alone, and answered in their own turn */
    static const char kUntilDecided[] = R"(
local function until_decided()
    local answer = decide()
    while type(answer) == 'table' and answer[1] == -1 do
        redis.call('INCR', 'asked again')
        answer = decide()
    end
    return answer
end

local limits = select(2, string.gsub(ARGV[1], '/', ''))
local requests = #KEYS / limits
if limits == 0 or requests == 1 then
    return until_decided()
end

local keys, args = KEYS, ARGV
local all = decide()
if type(all) ~= 'string' or #all ~= 8 * (3 * limits * requests + 1) then
    return redis.error_reply('no answer to all')
end

local answers, undecided, is_first_undecided = {}, {}, {}
for r = 1, requests do
    local first_key = keys[(r - 1) * limits + 1]
    local answer = string.sub(all, 24 * limits * (r - 1) + 1, 24 * limits * r)
    answers[r] = answer .. string.sub(all, -8)
    if struct.unpack('<i8', answer) == -1 then
        undecided[#undecided + 1] = r
        is_first_undecided[first_key] = true
    elseif is_first_undecided[first_key] then
        return redis.error_reply('decided before one of the same client that came first')
    end
end
for _, r in ipairs(undecided) do
    redis.call('INCR', 'asked alone')
    KEYS = { unpack(keys, (r - 1) * limits + 1, r * limits) }
    ARGV = { unpack(args, 1, 2 * limits + 1) }
    ARGV[#ARGV + 1] = args[2 * limits + 1 + r]
    answers[r] = until_decided()
end
return answers
)";

    return std::string("local keys_expire = ")
           + (keys_expire ? "true" : "false") + kCommands
           + (keys_expire ? kExpiry : "")
           + "local KEYS, ARGV = KEYS, ARGV\nlocal function decide()\n" + script
           + "\nend\n" + kUntilDecided;
}

/* A request's id is a UUID, of all kinds of bytes, that ends with a number. */
inline std::string id_of(uint64_t number)
{
    uint64_t mixed = number * 0x9e3779b97f4a7c15;

    return text("%08" PRIx64 "-%04" PRIx64 "-7%03" PRIx64 "-8%03" PRIx64
                "-%012" PRIx64,
                mixed >> 32, mixed >> 16 & 0xffff, mixed >> 8 & 0xfff,
                mixed & 0xfff, number);
}

/* That number; 0: it is nobody's, and -1: no request has such an id. */
inline int64_t number_of_id(const std::string &id)
{
    constexpr size_t kBeforeNumber = 24;
    constexpr size_t kSize = 36;

    if (id.size() != kSize) {
        return 0;
    }

    uint64_t number = strtoull(id.c_str() + kBeforeNumber, nullptr, 16);

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

inline std::string name_of(int key)
{
    return "key" + std::to_string(key);
}

/* One that may be asked in the short form. */
inline bool is_ordinary(const Call &call)
{
    return !call.settles && !call.intervenes
           && std::all_of(call.limits.begin(), call.limits.end(),
                          [](const Limit &limit) {
                              return limit.cost == 1 && !limit.counts_refused
                                     && !limit.dry_run;
                          });
}

/* What the short form says of the limits. */
inline std::vector<std::string> short_words(const Call &call)
{
    std::vector<std::string> words(1);

    for (const Limit &limit : call.limits) {
        words[0] += "/" + (rule_of(limit) == "i" ? "i" : algorithm_of(limit));
        words.push_back(std::to_string(limit.window));
        words.push_back(std::to_string(limit.max));
    }

    return words;
}

inline void add_short_form(const Call *calls, size_t count,
                           std::vector<std::string> *args)
{
    std::vector<std::string> words = short_words(calls[0]);

    args->insert(args->end(), words.begin(), words.end());

    if (words[0].find("/0") == std::string::npos
        && words[0].find('i') == std::string::npos)
    {
        return; /* no ids are kept */
    }

    for (size_t i = 0; i < count; i++) {
        args->push_back(id_of(calls[i].id));
    }
}

inline void add_long_form(const Call &call, std::vector<std::string> *args)
{
    args->push_back(call.settles ? std::to_string(call.then) : "");
    args->push_back(id_of(call.id));

    for (const Limit &limit : call.limits) {
        args->push_back(std::to_string(limit.window));
        args->push_back(
            std::to_string(call.settles ? limit.true_cost : limit.max));
        args->push_back(std::to_string(limit.cost));
        args->push_back(algorithm_of(limit));
        args->push_back(rule_of(limit));
    }
}

/* The scripts of a store, as Redis knows them. */
struct Scripts {
    std::string window; /* lua/sliding_window.lua */
    std::string client; /* lua/client.lua */
};

/* Where a client's ruling is noted once more. */
inline std::string index_of(int key)
{
    return name_of(key) + "!";
}

inline void add_time(const Call &call, std::vector<std::string> *args)
{
    args->push_back(
        text("%" PRId64 ":%" PRId64, call.time / kSecond, call.time % kSecond));
}

inline void append_intervention(Redis *redis, const std::string &sha,
                                const Call &call)
{
    static const char *const kActs[] = {"look", "forget", "ban", "max"};

    const Limit &limit = call.limits[0];
    const Intervention &what = call.intervention;
    std::vector<std::string> args{"EVALSHA",
                                  sha,
                                  "2",
                                  name_of(limit.key),
                                  index_of(limit.key),
                                  kActs[static_cast<size_t>(what.act)],
                                  std::to_string(limit.window),
                                  algorithm_of(limit),
                                  std::to_string(what.lasts),
                                  std::to_string(what.max)};

    add_time(call, &args);
    redis->append(args);
}

/* Appends what asks a script, known by its hash, what the calls say: one of any
 * kind, or several that may be asked at once. */
inline void append_calls(Redis *redis, const Scripts &scripts,
                         const Call *calls, size_t count)
{
    const Call &first = calls[0];

    if (first.intervenes) {
        append_intervention(redis, scripts.client, first);
        return;
    }

    std::vector<std::string> args{"EVALSHA", scripts.window,
                                  std::to_string(count * first.limits.size())};

    for (size_t i = 0; i < count; i++) {
        for (const Limit &limit : calls[i].limits) {
            args.push_back(name_of(limit.key));
        }
    }

    count > 1 || (is_ordinary(first) && first.id % 2)
        ? add_short_form(calls, count, &args)
        : add_long_form(first, &args);

    add_time(first, &args);
    redis->append(args);
}

inline void append_call(Redis *redis, const Scripts &scripts, const Call &call)
{
    append_calls(redis, scripts, &call, 1);
}

/* Asked of the same keys, each as the same limit. */
inline bool have_same_keys(const Call &a, const Call &b)
{
    return std::equal(
        a.limits.begin(), a.limits.end(), b.limits.begin(), b.limits.end(),
        [](const Limit &x, const Limit &y) { return x.key == y.key; });
}

inline bool share_a_key(const Call &a, const Call &b)
{
    return std::any_of(a.limits.begin(), a.limits.end(), [&](const Limit &x) {
        return std::any_of(b.limits.begin(), b.limits.end(),
                           [&](const Limit &y) { return x.key == y.key; });
    });
}

/*
 * How many calls of the round, from `first` on, are asked about at once: those
 * of one moment whose limits are the same. Where one is not decided about, no
 * later one of its keys may be, or they would be answered in another order than
 * the model's: so nobody shares only some keys, and none of a long log, more of
 * which may be tidied up by the next request.
 */
inline size_t asked_at_once(const Round &round, size_t first)
{
    constexpr size_t kMostKeys = 16;
    const Call &call = round.calls[first];
    bool may_share = round.mix->checks != Checks::kLongWaits;
    size_t most = kMostKeys / call.limits.size();
    size_t count = 1;

    if (!is_ordinary(call) || call.id % 4 == 0) {
        return 1;
    }

    auto goes_with_all = [&](const Call &next) {
        auto goes_with = [&](const Call &other) {
            return !share_a_key(next, other)
                   || (may_share && have_same_keys(next, other));
        };

        return std::all_of(&call, &call + count, goes_with);
    };

    while (count < most && first + count < round.calls.size()) {
        const Call &next = round.calls[first + count];

        if (next.time != call.time || !is_ordinary(next)
            || short_words(next) != short_words(call) || !goes_with_all(next))
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

inline std::string contents_of(const char *path)
{
    std::ifstream file(path);
    std::ostringstream contents;

    if (!(contents << file.rdbuf())) {
        throw std::runtime_error(std::string(path) + " cannot be read");
    }

    return contents.str();
}

}  // namespace sl_model
