/*
 * A call of lua/sliding_window.lua on its way: what it says, who waits for the
 * answer, and what has to be done if nobody does.
 */

#pragma once

#include "redis/sl_redis_connection.h"
#include "redis/sl_script_call.h"

namespace sl {

class RedisChannel;

/* What is to be taken back if the answer finds nobody. */
struct Provisional {
    /* Has no id of its own: that is in `id`. */
    ScriptArgs args;

    /* Which limit of the question each of them is. */
    size_t index[kMaxLimits];

    char id[kUuidSize];

    /* nullptr if there is nothing provisional in it, or no memory. */
    static Provisional *of(const Query &query, const ScriptArgs &all) noexcept;
};

/*
 * A channel owns it until the reply has come or the connection broke, which
 * may be long after its asker gave up or went away.
 */
struct RedisCall final : RedisCommand, PendingQuestion, ngx_queue_t {
    RedisChannel *channel;

    /* nullptr once answered, timed out or abandoned. */
    AnswerReceiver *receiver;

    ngx_event_t timer;

    /* It asks, about so many limits; if not, it takes something back. */
    bool is_question;
    size_t limits;

    /* What to take back if it is not known or not wanted; nullptr: nothing. */
    Provisional *provisional;

    /* It takes something back, and may do so twice. */
    bool is_repeatable;

    /* Its time is up and the reply has not come; since when. */
    bool is_late;
    ngx_msec_t late_since;

    /* In Redis's protocol, kept for another try. It is part of the call's own
     * memory. */
    char *command;
    size_t size;

    /* It can be asked together with others that have the same limits: these are
     * the words of the command that are its own, and those it shares. */
    bool is_ordinary;
    std::string_view keys;
    std::string_view shared;
    std::string_view id;

    /* As ScriptArgs has it. */
    unsigned slot;

    /* Redis had lost the script, and has been given it again. */
    bool retried;

    /* How often it was sent elsewhere. */
    unsigned redirects;

    /* Whose timeout is being dealt with; nullptr once it is gone. */
    static const RedisCall *expiring;

    /* nullptr: out of memory. */
    static RedisCall *create(const ScriptArgs &args) noexcept;

    ~RedisCall();

    /* It is larger than its type. */
    static void operator delete(void *memory) noexcept;

    /* Answers whoever still waits. */
    void reply(const Answer &answer) noexcept;

    /* The timer stays: that no reply comes is worth knowing all the same. */
    void abandon(bool keep_provisional) noexcept override;

    void stop_timer() noexcept;
};

/* Ordinary calls with the same limits, asked in one command. */
struct RedisBatch final : RedisCommand {
    /* Of one limit; of fewer calls if they have more: an answer has no room. */
    static constexpr size_t kMaxCalls = kMaxLimits;

    /* Room for the command: for all their keys and ids, and the limits. */
    static constexpr size_t kMaxSize =
        kMaxCalls * (sizeof(RedisKey::data) + kUuidSize + 4 * 32) + 256;

    RedisChannel *channel;
    RedisCall *calls[kMaxCalls];
    size_t count;

    /* Returns the size. */
    size_t write(char (&text)[kMaxSize]) const noexcept;
};

}  // namespace sl
