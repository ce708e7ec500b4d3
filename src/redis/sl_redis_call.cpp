#include "sl_redis_call.h"

#include <new>

#include "../core/sl_cluster_slot.h"
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

/* The words of a command; numbers are written out. */
class Words {
  public:
    void add(std::string_view word) noexcept
    {
        words_[count_] = word.data();
        sizes_[count_++] = word.size();
    }

    void add(int64_t number) noexcept
    {
        u_char *text = numbers_[number_count_++];

        add({reinterpret_cast<char *>(text),
             static_cast<size_t>(ngx_sprintf(text, "%L", number) - text)});
    }

    /* -1: out of memory. */
    int format(char **command) noexcept
    {
        return static_cast<int>(
            redisFormatCommandArgv(command, count_, words_, sizes_));
    }

  private:
    static constexpr size_t kPerLimit = 6;
    static constexpr size_t kMaxWords = 5 + kPerLimit * kMaxLimits;

    const char *words_[kMaxWords];
    size_t sizes_[kMaxWords];
    int count_ = 0;
    u_char numbers_[kMaxWords][NGX_INT64_LEN];
    size_t number_count_ = 0;
};

/* What most requests are; the script takes a shorter form of it. */
bool is_ordinary(const ScriptArgs &args)
{
    const ScriptLimit &limit = args.limits[0];

    return args.count == 1 && args.time_us == ScriptArgs::kAsk
           && limit.cost == 1 && limit.buckets == 0 && *limit.rule == '\0';
}

void add_ordinary(const ScriptArgs &args, Words *words)
{
    words->add(args.id);
    words->add(args.limits[0].window_us);
    words->add(args.limits[0].max);
}

void add_all(const ScriptArgs &args, Words *words)
{
    if (args.time_us == ScriptArgs::kAsk) {
        words->add("");
    } else {
        words->add(args.time_us);
    }

    words->add(args.id);

    for (size_t i = 0; i < args.count; i++) {
        const ScriptLimit &limit = args.limits[i];

        words->add(limit.window_us);
        words->add(limit.max);
        words->add(limit.cost);
        words->add(static_cast<int64_t>(limit.buckets));
        words->add(limit.rule);
    }
}

}  // namespace

ScriptArgs::ScriptArgs(const Query &query, int64_t time,
                       KeyStyle style) noexcept
    : count(query.count), id(query.id), time_us(time)
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
        ngx_memcpy(p->id, query.id.data(), kUuidSize);
        p->args.id = {p->id, kUuidSize};
    }

    return p;
}

/* Writes the EVALSHA; lua/sliding_window.lua says what it is made of. */
RedisCall *RedisCall::create(const ScriptArgs &args) noexcept
{
    Words words;

    words.add("EVALSHA");
    words.add(script_sha());
    words.add(static_cast<int64_t>(args.count));

    for (size_t i = 0; i < args.count; i++) {
        words.add(args.limits[i].key.view());
    }

    is_ordinary(args) ? add_ordinary(args, &words) : add_all(args, &words);

    auto *call = new (std::nothrow) RedisCall();

    if (call == nullptr) {
        return nullptr;
    }

    call->size = words.format(&call->command);

    if (call->size < 0) {
        call->command = nullptr;
        delete call;
        return nullptr;
    }

    if (args.count > 0) {
        call->slot = cluster_slot(args.limits[0].key.view());
    }

    call->timer.data = call;
    call->timer.log = ngx_cycle->log;

    return call;
}

const RedisCall *RedisCall::expiring;

RedisCall::~RedisCall()
{
    redisFreeCommand(command);
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
