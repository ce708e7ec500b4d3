#include "redis/sl_redis_call.h"

#include <algorithm>
#include <new>

#include "redis/sl_redis_command.h"
#include "redis/sl_redis_script.h"

namespace sl {

namespace {

/* What the script says of a request that it has not decided about yet. */
constexpr int64_t kAskAgain = -1;

ScriptLimit script_limit(const LimitQuery &limit, std::string_view prefix,
                         KeyStyle style)
{
    static const char *const kRules[2][2] = {{"", "n"}, {"d", "dn"}};

    return ScriptLimit{redis_key(prefix, limit.zone, limit.key, style),
                       limit.window_us,
                       limit.max,
                       limit.cost,
                       limit.buckets,
                       kRules[limit.counts_refused][limit.dry_run]};
}

/* Room for any command: what each has, and what a limit adds. */
constexpr size_t kMaxCommand =
    6 * (CommandWriter::kAroundWord + kUuidSize + 40)
    + kMaxLimits
          * (6 * CommandWriter::kAroundWord + sizeof(RedisKey::data)
             + 4 * kMaxDigits + 2);

/* What most requests are; the script takes a shorter form of it. */
bool are_ordinary(const ScriptArgs &args)
{
    if (args.count == 0 || args.time_us != ScriptArgs::kAsk) {
        return false;
    }

    return std::all_of(
        args.limits, args.limits + args.count, [](const ScriptLimit &limit) {
            return limit.cost == 1 && limit.buckets == 0 && *limit.rule == '\0';
        });
}

/* How many limits, and what each of them is. */
void add_limits(const ScriptArgs &args, CommandWriter *command)
{
    char count[1 + kMaxDigits] = {'/'};
    char *end = write_number(count + 1, static_cast<int64_t>(args.count));

    command->add({count, static_cast<size_t>(end - count)});

    for (size_t i = 0; i < args.count; i++) {
        command->add(args.limits[i].window_us);
        command->add(args.limits[i].max);
    }
}

void add_arguments(const ScriptArgs &args, CommandWriter *command)
{
    if (args.time_us == ScriptArgs::kAsk) {
        command->add("");
    } else {
        command->add(args.time_us);
    }

    command->add(args.id);

    for (size_t i = 0; i < args.count; i++) {
        const ScriptLimit &limit = args.limits[i];

        command->add(limit.window_us);
        command->add(limit.max);
        command->add(limit.cost);
        command->add(static_cast<int64_t>(limit.buckets));
        command->add(limit.rule);
    }
}

}  // namespace

ScriptArgs::ScriptArgs(const Query &query, int64_t time,
                       std::string_view prefix, KeyStyle style) noexcept
    : count(query.count), id(query.id), time_us(time), slot(0)
{
    for (size_t i = 0; i < count; i++) {
        limits[i] = script_limit(query.limits[i], prefix, style);
    }
}

Provisional *Provisional::of(const Query &query, const ScriptArgs &all) noexcept
{
    Provisional *p = nullptr;

    for (size_t i = 0; i < query.count; i++) {
        if (!query.limits[i].provisional) {
            continue;
        }

        if (p == nullptr) {
            p = new (std::nothrow) Provisional();
        }

        if (p != nullptr) {
            p->index[p->args.count] = i;
            p->args.limits[p->args.count++] = all.limits[i];
        }
    }

    if (p != nullptr) {
        p->args.slot = all.slot;
        ngx_memcpy(p->id, query.id.data(), kUuidSize);
        p->args.id = {p->id, kUuidSize};
    }

    return p;
}

/* Writes the EVALSHA; lua/sliding_window.lua says what it is made of. */
RedisCall *RedisCall::create(const ScriptArgs &args) noexcept
{
    char text[kMaxCommand];
    bool ordinary = are_ordinary(args);
    CommandWriter command(text,
                          3 + args.count + 2 + args.count * (ordinary ? 2 : 5));

    command.add("EVALSHA");
    command.add(script_sha());
    command.add(static_cast<int64_t>(args.count));

    size_t key_at = command.size();

    for (size_t i = 0; i < args.count; i++) {
        command.add(args.limits[i].key.view());
    }

    size_t limit_at = command.size();
    size_t id_at = limit_at;

    if (ordinary) {
        add_limits(args, &command);
        id_at = command.size();
        command.add(args.id);
    } else {
        add_arguments(args, &command);
    }

    void *memory =
        ::operator new(sizeof(RedisCall) + command.size(), std::nothrow);

    if (memory == nullptr) {
        return nullptr;
    }

    auto *call = new (memory) RedisCall();

    call->command = reinterpret_cast<char *>(call + 1);
    call->size = command.size();
    ngx_memcpy(call->command, text, call->size);

    call->is_ordinary = ordinary;
    call->keys = {call->command + key_at, limit_at - key_at};
    call->shared = {call->command + limit_at, id_at - limit_at};
    call->id = {call->command + id_at, call->size - id_at};

    call->slot = args.slot;
    call->timer.data = call;
    call->timer.log = ngx_cycle->log;

    return call;
}

void RedisCall::operator delete(void *memory) noexcept
{
    ::operator delete(memory);
}

const RedisCall *RedisCall::expiring;

RedisCall::~RedisCall()
{
    delete provisional;
    stop_timer();

    if (expiring == this) {
        expiring = nullptr;
    }
}

void RedisCall::reply(const Answer &answer) noexcept
{
    AnswerReceiver *to = receiver;

    receiver = nullptr;
    stop_timer();

    if (to != nullptr) {
        to->receive(answer);
    }
}

void RedisCall::abandon(bool keep_provisional) noexcept
{
    receiver = nullptr;

    if (keep_provisional) {
        delete provisional;
        provisional = nullptr;
    }
}

void RedisCall::stop_timer() noexcept
{
    if (timer.timer_set) {
        ngx_del_timer(&timer);
    }
}

/* ---- replies ---- */

namespace {

bool read_array(const redisReply *reply, size_t count, int64_t *numbers)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != count) {
        return false;
    }

    for (size_t i = 0; i < count; i++) {
        if (reply->element[i]->type != REDIS_REPLY_INTEGER) {
            return false;
        }

        numbers[i] = reply->element[i]->integer;
    }

    return true;
}

/* Eight bytes each, the lowest first. */
bool read_packed(const redisReply *reply, size_t count, int64_t *numbers)
{
    std::string_view text =
        reply->type == REDIS_REPLY_STRING ? text_of(reply) : "";

    if (text.size() != count * 8) {
        return false;
    }

    for (size_t i = 0; i < count; i++) {
        uint64_t number = 0;

        for (size_t byte = 8; byte > 0; byte--) {
            number = number << 8 | static_cast<uint8_t>(text[i * 8 + byte - 1]);
        }

        numbers[i] = static_cast<int64_t>(number);
    }

    return true;
}

}  // namespace

/* ---- several in one ---- */

size_t RedisBatch::write(char (&text)[kMaxSize]) const noexcept
{
    size_t limits = calls[0]->limits;
    CommandWriter command(text, 3 + count * limits + 1 + 2 * limits + count);

    command.add("EVALSHA");
    command.add(script_sha());
    command.add(static_cast<int64_t>(count * limits));

    for (size_t i = 0; i < count; i++) {
        command.add_raw(calls[i]->keys);
    }

    command.add_raw(calls[0]->shared);

    for (size_t i = 0; i < count; i++) {
        command.add_raw(calls[i]->id);
    }

    return command.size();
}

bool read_reply(const redisReply *reply, size_t limits, Answer *answer,
                uint32_t *again) noexcept
{
    int64_t numbers[numbers_in_answer(kMaxLimits)];
    size_t count = numbers_in_answer(limits);

    if (!read_packed(reply, count, numbers)
        && !read_array(reply, count, numbers)) {
        return false;
    }

    *again = 0;

    for (size_t i = 0; i < limits; i++) {
        int64_t &admits = numbers[i * kNumbersPerLimit];

        if (admits == kAskAgain) {
            *again |= uint32_t{1} << i;
            admits = 0;
        }
    }

    return read_answer(numbers, count, limits, answer->states,
                       &answer->time_us);
}

}  // namespace sl
