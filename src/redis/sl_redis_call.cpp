#include "sl_redis_call.h"

#include <cstring>
#include <new>

#include "../core/sl_number.h"
#include "sl_redis_script.h"

namespace sl {

namespace {

ScriptLimit script_limit(const LimitQuery &limit, KeyStyle style)
{
    static const char *const kRules[2][2] = {{"", "n"}, {"d", "dn"}};

    return ScriptLimit{redis_key(limit.zone, limit.key, style),
                       limit.window_us,
                       limit.max,
                       limit.cost,
                       limit.buckets,
                       kRules[limit.counts_refused][limit.dry_run]};
}

/*
 * A command as Redis wants it: how many words, and each with its size before
 * it. hiredis can write that, too, but takes a printf for every word.
 */
class Command {
  public:
    explicit Command(size_t words) noexcept : end_(text_)
    {
        add_size('*', words);
    }

    void add(std::string_view word) noexcept
    {
        add_size('$', word.size());
        append(word);
        append(kNewline);
    }

    void add(int64_t number) noexcept
    {
        char digits[kMaxDigits];

        add({digits,
             static_cast<size_t>(write_number(digits, number) - digits)});
    }

    std::string_view text() const noexcept
    {
        return {text_, static_cast<size_t>(end_ - text_)};
    }

  private:
    static constexpr std::string_view kNewline = "\r\n";

    /* '$', digits and two newlines. */
    static constexpr size_t kAroundWord = 1 + kMaxDigits + 2 * kNewline.size();

    /* What every command has, and what each limit adds: its key, four numbers
     * and the rule. */
    static constexpr size_t kMaxSize =
        6 * (kAroundWord + 64)
        + kMaxLimits
              * (6 * kAroundWord + sizeof(RedisKey::data) + 4 * kMaxDigits + 2);

    void add_size(char mark, size_t size) noexcept
    {
        *end_++ = mark;
        end_ = write_number(end_, static_cast<int64_t>(size));
        append(kNewline);
    }

    void append(std::string_view text) noexcept
    {
        memcpy(end_, text.data(), text.size());
        end_ += text.size();
    }

    char text_[kMaxSize];
    char *end_;
};

/* What most requests are; the script takes a shorter form of it. */
bool is_ordinary(const ScriptArgs &args)
{
    const ScriptLimit &limit = args.limits[0];

    return args.count == 1 && args.time_us == ScriptArgs::kAsk
           && limit.cost == 1 && limit.buckets == 0 && *limit.rule == '\0';
}

void add_ordinary(const ScriptArgs &args, Command *command)
{
    command->add(args.limits[0].window_us);
    command->add(args.limits[0].max);
    command->add(args.id);
}

void add_all(const ScriptArgs &args, Command *command)
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
                       KeyStyle style) noexcept
    : count(query.count), id(query.id), time_us(time), slot(0)
{
    for (size_t i = 0; i < count; i++) {
        limits[i] = script_limit(query.limits[i], style);
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
    bool ordinary = is_ordinary(args);
    Command command(3 + args.count + (ordinary ? 3 : 2 + 5 * args.count));

    command.add("EVALSHA");
    command.add(script_sha());
    command.add(static_cast<int64_t>(args.count));

    for (size_t i = 0; i < args.count; i++) {
        command.add(args.limits[i].key.view());
    }

    ordinary ? add_ordinary(args, &command) : add_all(args, &command);

    std::string_view text = command.text();
    void *memory =
        ::operator new(sizeof(RedisCall) + text.size(), std::nothrow);

    if (memory == nullptr) {
        return nullptr;
    }

    auto *call = new (memory) RedisCall();

    call->command = reinterpret_cast<char *>(call + 1);
    call->size = text.copy(call->command, text.size());
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

bool read_reply(const redisReply *reply, size_t limits, Answer *answer) noexcept
{
    int64_t numbers[numbers_in_answer(kMaxLimits)];

    if (reply->type != REDIS_REPLY_ARRAY
        || reply->elements != numbers_in_answer(limits))
    {
        return false;
    }

    for (size_t i = 0; i < reply->elements; i++) {
        if (reply->element[i]->type != REDIS_REPLY_INTEGER) {
            return false;
        }

        numbers[i] = reply->element[i]->integer;
    }

    return read_answer(numbers, reply->elements, limits, answer->states,
                       &answer->time_us);
}

}  // namespace sl
