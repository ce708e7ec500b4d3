#include "redis/sl_script_call.h"

#include <algorithm>

#include "redis/sl_redis_script.h"

namespace sl {

namespace {

/* What the script says of a request that it has not decided about yet. */
constexpr int64_t kUndecided = -1;

ScriptLimit script_limit(const LimitQuery &limit, std::string_view prefix,
                         KeyStyle style)
{
    return ScriptLimit{redis_key(prefix, limit.zone, limit.key, style),
                       limit.window_us,
                       limit.max,
                       limit.cost,
                       limit.algorithm,
                       limit.buckets,
                       limit.counts_refused,
                       limit.dry_run,
                       limit.algorithm == Algorithm::kPacked
                           && limit.may_be_taken_back,
                       limit.true_cost};
}

/* Most questions are: they cost 1, refused requests do not count, and there is
 * no dry run. The script has a short form for them. */
bool are_ordinary(const ScriptArgs &args)
{
    if (args.count == 0 || args.time_us != ScriptArgs::kAsk) {
        return false;
    }

    return std::all_of(
        args.limits, args.limits + args.count, [](const ScriptLimit &limit) {
            return limit.cost == 1 && !limit.counts_refused && !limit.dry_run;
        });
}

/* In the short form an id is only sent to where it is kept. */
bool keep_ids(const ScriptArgs &args)
{
    return std::any_of(
        args.limits, args.limits + args.count, [](const ScriptLimit &limit) {
            return limit.algorithm == Algorithm::kLog || limit.keeps_ids;
        });
}

/* That ids are kept is said by the rule, where there is one. */
std::string_view short_algorithm_word(const ScriptLimit &limit,
                                      char (&room)[kMaxDigits])
{
    return limit.keeps_ids
               ? "i"
               : algorithm_word(limit.algorithm, limit.buckets, room);
}

std::string_view rule_of(const ScriptLimit &limit,
                         char (&room)[ScriptText::kMaxRule])
{
    char *end = room;

    if (limit.counts_refused) {
        *end++ = 'd';
    }

    if (limit.dry_run) {
        *end++ = 'n';
    }

    if (limit.keeps_ids) {
        *end++ = 'i';
    }

    return {room, static_cast<size_t>(end - room)};
}

void add_short_limits(const ScriptArgs &args, CommandWriter *command)
{
    char algorithms[kMaxLimits * (1 + kMaxDigits)];
    char *end = algorithms;

    for (size_t i = 0; i < args.count; i++) {
        char room[kMaxDigits];
        std::string_view word = short_algorithm_word(args.limits[i], room);

        *end++ = '/';
        end += word.copy(end, word.size());
    }

    command->add({algorithms, static_cast<size_t>(end - algorithms)});

    for (size_t i = 0; i < args.count; i++) {
        command->add(args.limits[i].window_us);
        command->add(args.limits[i].max);
    }
}

/* What is settled has cost something, whatever the limit allows. */
void add_full_limits(const ScriptArgs &args, CommandWriter *command)
{
    bool is_settled = args.time_us >= 0;

    for (size_t i = 0; i < args.count; i++) {
        const ScriptLimit &limit = args.limits[i];
        char word[kMaxDigits];
        char rule[ScriptText::kMaxRule];

        command->add(limit.window_us);
        command->add(is_settled ? limit.true_cost : limit.max);
        command->add(limit.cost);
        command->add(algorithm_word(limit.algorithm, limit.buckets, word));
        command->add(rule_of(limit, rule));
    }
}

void add_time(const ScriptArgs &args, CommandWriter *command)
{
    if (args.time_us == ScriptArgs::kAsk) {
        command->add("");
    } else if (args.time_us == ScriptArgs::kTryOut) {
        command->add("?");
    } else {
        command->add(args.time_us);
    }
}

}  // namespace

std::string_view algorithm_word(Algorithm algorithm, unsigned buckets,
                                char (&room)[kMaxDigits]) noexcept
{
    switch (algorithm) {
    case Algorithm::kPacked:
        return "p";

    case Algorithm::kBuckets:
        return {room, static_cast<size_t>(write_number(room, buckets) - room)};

    case Algorithm::kLog:
        break;
    }

    return "0";
}

ScriptArgs::ScriptArgs(const Query &query, int64_t time,
                       std::string_view prefix, KeyStyle style) noexcept
    : count(query.count), id(query.id), time_us(time), slot(0)
{
    for (size_t i = 0; i < count; i++) {
        limits[i] = script_limit(query.limits[i], prefix, style);
    }
}

ScriptArgs ScriptArgs::probe(const RedisKey *keys, size_t count) noexcept
{
    ScriptArgs args;

    args.time_us = kTryOut;
    args.id = "probe";
    args.count = count;

    for (size_t i = 0; i < count; i++) {
        args.limits[i] =
            ScriptLimit{keys[i], 100000, 1000000, 1,     Algorithm::kLog,
                        0,       false,  false,   false, 0};
    }

    return args;
}

ScriptText::ScriptText(const ScriptArgs &args, char (&room)[kMaxSize],
                       Form form) noexcept
    : is_short_(form == Form::kShortest && are_ordinary(args)), keys_(),
      limits_(), id_()
{
    bool has_id = !is_short_ || keep_ids(args);
    size_t limit_words = is_short_ ? 2 : 5;
    CommandWriter command(room, 3 + args.count + 1 + (has_id ? 1 : 0)
                                    + args.count * limit_words);

    command.add("EVALSHA");
    command.add(script_sha());
    command.add(static_cast<int64_t>(args.count));

    auto part = [&](auto add) {
        size_t at = command.size();

        add();

        return Part{at, command.size() - at};
    };

    auto add_id = [&] {
        if (has_id) {
            command.add(args.id);
        }
    };

    keys_ = part([&] {
        for (size_t i = 0; i < args.count; i++) {
            command.add(args.limits[i].key.view());
        }
    });

    if (is_short_) {
        limits_ = part([&] { add_short_limits(args, &command); });
        id_ = part(add_id);
    } else {
        add_time(args, &command);
        id_ = part(add_id);
        limits_ = part([&] { add_full_limits(args, &command); });
    }

    all_ = {room, command.size()};
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

bool read_reply(const redisReply *reply, size_t limits, LimitState *states,
                int64_t *time_us, uint32_t *undecided) noexcept
{
    static_assert(kMaxLimitsInAnswer <= sizeof(*undecided) * 8);

    int64_t numbers[numbers_in_ruled_answer(kMaxLimitsInAnswer)];
    size_t count = numbers_in_answer(limits);

    if (!read_packed(reply, count, numbers)
        && !read_array(reply, count, numbers)) {
        /* more of them, where a client has been given another max */
        count = numbers_in_ruled_answer(limits);

        if (!read_array(reply, count, numbers)) {
            return false;
        }
    }

    *undecided = 0;

    for (size_t i = 0; i < limits; i++) {
        int64_t &admits = numbers[i * kNumbersPerLimit];

        if (admits == kUndecided) {
            *undecided |= uint32_t{1} << i;
            admits = 0;
        }
    }

    return read_answer(numbers, count, limits, states, time_us);
}

}  // namespace sl
