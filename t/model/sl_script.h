/*
 * The scripts of lua/ in a real Redis, whose time is steered: the line of a
 * script that asks for it is replaced.
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
constexpr Store kRedis{false, 3, 128, int64_t{1} << 50, 256, 8};

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

inline void replace_only(std::string *text, const std::string &what,
                         const std::string &with)
{
    size_t at = text->find(what);

    if (at == std::string::npos
        || text->find(what, at + 1) != std::string::npos) {
        throw std::runtime_error("not once in the script: " + what);
    }

    text->replace(at, what.size(), with);
}

inline std::string steered(std::string script, bool keys_expire)
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

/* A request's id is "id-" and a number; 0: it is none. */
inline int64_t number_of_id(const std::string &id)
{
    return id.compare(0, 3, "id-") == 0 ? atoll(id.c_str() + 3) : 0;
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
    return !call.takes_back
           && std::all_of(call.limits.begin(), call.limits.end(),
                          [](const Limit &limit) {
                              return limit.cost == 1 && limit.buckets == 0
                                     && !limit.counts_refused && !limit.dry_run;
                          });
}

inline void add_short_form(const Call &call, std::vector<std::string> *args)
{
    args->push_back("/" + std::to_string(call.limits.size()));

    for (const Limit &limit : call.limits) {
        args->push_back(std::to_string(limit.window));
        args->push_back(std::to_string(limit.max));
    }

    args->push_back("id-" + std::to_string(call.id));
}

inline void add_long_form(const Call &call, std::vector<std::string> *args)
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
                                  std::to_string(limit.buckets),
                                  std::to_string(what.lasts),
                                  std::to_string(what.max)};

    add_time(call, &args);
    redis->append(args);
}

/* Appends what asks a script, known by its hash, what the call says. */
inline void append_call(Redis *redis, const Scripts &scripts, const Call &call)
{
    if (call.intervenes) {
        append_intervention(redis, scripts.client, call);
        return;
    }

    std::vector<std::string> args{"EVALSHA", scripts.window,
                                  std::to_string(call.limits.size())};

    for (const Limit &limit : call.limits) {
        args.push_back(name_of(limit.key));
    }

    is_ordinary(call) && call.id % 2 ? add_short_form(call, &args)
                                     : add_long_form(call, &args);

    add_time(call, &args);
    redis->append(args);
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
