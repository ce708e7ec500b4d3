#include "redis/sl_redis_call.h"

#include <new>

#include "redis/sl_redis_script.h"

namespace sl {

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

RedisCall *RedisCall::create(const ScriptArgs &args) noexcept
{
    ScriptText text(args);
    size_t size = text.all().size();
    void *memory = ::operator new(sizeof(RedisCall) + size, std::nothrow);

    if (memory == nullptr) {
        return nullptr;
    }

    auto *call = new (memory) RedisCall();

    call->command = reinterpret_cast<char *>(call + 1);
    call->size = text.all().copy(call->command, size);

    call->is_ordinary = text.is_short();
    call->keys = {call->command + text.keys_at(),
                  text.limits_at() - text.keys_at()};
    call->shared = {call->command + text.limits_at(),
                    text.id_at() - text.limits_at()};
    call->id = {call->command + text.id_at(), size - text.id_at()};

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

}  // namespace sl
