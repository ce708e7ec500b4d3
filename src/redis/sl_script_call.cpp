#include "redis/sl_script_call.h"

#include <algorithm>

#include "redis/sl_redis_script.h"

namespace sl {

namespace {

/* What the script says of a request one of whose keys holds another type. */
constexpr int64_t kMisplaced = -1;

ScriptLimit script_limit(const LimitQuery &limit, std::string_view prefix,
                         KeyStyle style)
{
    KeyFormat format(limit.algorithm, limit.buckets, limit.window_us);

    return ScriptLimit{redis_key(prefix, limit.zone, limit.key, style, format),
                       limit.window_us,
                       limit.max,
                       limit.cost,
                       limit.algorithm,
                       limit.buckets,
                       limit.counts_refused,
                       limit.dry_run,
                       limit.true_cost};
}

/* Only logs keep it, and find by it what is to be settled. */
bool needs_id(const ScriptArgs &args)
{
    return std::any_of(args.limits, args.limits + args.count,
                       [](const ScriptLimit &limit) {
                           return limit.algorithm == Algorithm::kLog;
                       });
}

/* Words that a task has besides the keys and what ScriptText::shared() is in a
 * check. */
size_t words_of(ScriptArgs::Task task, bool has_id)
{
    switch (task) {
    case ScriptArgs::Task::kCheck:
        return has_id ? 1 : 0;

    case ScriptArgs::Task::kTry:
        return has_id ? 2 : 1;

    case ScriptArgs::Task::kSettle:
        break;
    }

    return 3;
}

/* In one word for all limits, as most calls have one. What is refused does not
 * matter when it is settled. */
std::string_view kinds_of(const ScriptArgs &args,
                          char (&room)[ScriptText::kMaxKinds])
{
    bool is_settled = args.task == ScriptArgs::Task::kSettle;
    char *end = room;

    for (size_t i = 0; i < args.count; i++) {
        const ScriptLimit &limit = args.limits[i];
        char kind[kMaxKind];

        if (i > 0) {
            *end++ = '/';
        }

        end +=
            kind_word(limit.algorithm, limit.buckets, kind).copy(end, kMaxKind);

        if (limit.cost != 1) {
            *end++ = '*';
            end = write_number(end, limit.cost);
        }

        if (limit.counts_refused && !is_settled) {
            *end++ = 'd';
        }

        if (limit.dry_run && !is_settled) {
            *end++ = 'n';
        }
    }

    return {room, static_cast<size_t>(end - room)};
}

void add_task(const ScriptArgs &args, CommandWriter *command)
{
    char room[ScriptText::kMaxKinds];
    std::string_view kinds = kinds_of(args, room);

    switch (args.task) {
    case ScriptArgs::Task::kCheck:
        command->add(kinds);
        break;

    case ScriptArgs::Task::kSettle:
        command->add(":settle");
        command->add(kinds);
        command->add(args.time_us);
        command->add(args.id);
        break;

    case ScriptArgs::Task::kTry:
        command->add(":try");
        command->add(kinds);
        break;
    }
}

}  // namespace

std::string_view kind_word(Algorithm algorithm, unsigned buckets,
                           char (&room)[kMaxKind]) noexcept
{
    char *end = room + 1;

    switch (algorithm) {
    case Algorithm::kLog:
        room[0] = 'l';
        break;

    case Algorithm::kPacked:
        room[0] = 'p';
        break;

    case Algorithm::kBuckets:
        room[0] = 'b';
        end = write_number(end, buckets);
        break;
    }

    return {room, static_cast<size_t>(end - room)};
}

ScriptArgs::ScriptArgs(const Query &query, std::string_view prefix,
                       KeyStyle style) noexcept
    : count(query.count), id(query.id), task(Task::kCheck), time_us(0), slot(0)
{
    for (size_t i = 0; i < count; i++) {
        limits[i] = script_limit(query.limits[i], prefix, style);
    }
}

ScriptArgs ScriptArgs::probe(const RedisKey *keys, size_t count) noexcept
{
    ScriptArgs args;

    args.task = Task::kTry;
    args.id = "probe";
    args.count = count;

    for (size_t i = 0; i < count; i++) {
        args.limits[i] = ScriptLimit{
            keys[i], 100000, 1000000, 1, Algorithm::kLog, 0, false, false, 0};
    }

    return args;
}

ScriptText::ScriptText(const ScriptArgs &args, char (&room)[kMaxSize]) noexcept
    : keys_(), shared_(), id_()
{
    bool is_settled = args.task == ScriptArgs::Task::kSettle;
    bool has_id = !is_settled && needs_id(args);
    CommandWriter command(room, 3 + args.count + shared_words(args.count)
                                    + words_of(args.task, has_id));

    command.add("EVALSHA");
    command.add(script_sha());
    command.add(static_cast<int64_t>(args.count));

    auto part = [&](auto add) {
        size_t at = command.size();

        add();

        return Part{at, command.size() - at};
    };

    keys_ = part([&] {
        for (size_t i = 0; i < args.count; i++) {
            command.add(args.limits[i].key.view());
        }
    });

    shared_ = part([&] {
        add_task(args, &command);

        for (size_t i = 0; i < args.count; i++) {
            const ScriptLimit &limit = args.limits[i];

            command.add(limit.window_us);
            command.add(is_settled ? limit.true_cost : limit.max);
        }
    });

    id_ = part([&] {
        if (has_id) {
            command.add(args.id);
        }
    });

    all_ = {room, command.size()};
}

/* ---- replies ---- */

namespace {

/* Eight bytes each, the lowest first. */
void read_numbers(std::string_view text, size_t count, int64_t *numbers)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t number = 0;

        for (size_t byte = 8; byte > 0; byte--) {
            number = number << 8 | static_cast<uint8_t>(text[i * 8 + byte - 1]);
        }

        numbers[i] = static_cast<int64_t>(number);
    }
}

}  // namespace

bool read_reply(const redisReply *reply, size_t limits, LimitState *states,
                int64_t *time_us, uint32_t *misplaced) noexcept
{
    static_assert(kMaxLimitsInAnswer <= sizeof(*misplaced) * 8);

    int64_t numbers[numbers_in_ruled_answer(kMaxLimitsInAnswer)];
    std::string_view text =
        reply->type == REDIS_REPLY_STRING ? text_of(reply) : "";
    size_t count = text.size() / 8;

    if (text.size() % 8 != 0
        || (count != numbers_in_answer(limits)
            && count != numbers_in_ruled_answer(limits)))
    {
        return false;
    }

    read_numbers(text, count, numbers);
    *misplaced = 0;

    for (size_t i = 0; i < limits; i++) {
        int64_t &admits = numbers[i * kNumbersPerLimit];

        if (admits == kMisplaced) {
            *misplaced |= uint32_t{1} << i;
            admits = 0;
        }
    }

    return read_answer(numbers, count, limits, states, time_us);
}

}  // namespace sl
