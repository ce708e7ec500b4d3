/*
 * Calls that go out together: what is collected in one turn of the event loop
 * is asked in as few commands as possible, as that costs Redis least.
 */

#pragma once

#include <algorithm>

#include "redis/sl_redis_call.h"

namespace sl {

/* Calls that share a command, or one that has its own. */
struct CallGroup {
    /* Most calls; of calls about many limits there are fewer. */
    static constexpr size_t kMaxCalls = 16;

    static constexpr size_t most_about(size_t limits) noexcept
    {
        return std::min(kMaxCalls, kMaxLimitsInAnswer / limits);
    }

    CallPtr calls[kMaxCalls];
    size_t count = 0;

    void add(CallPtr call) noexcept { calls[count++] = std::move(call); }

    CallPtr *begin() noexcept { return calls; }
    CallPtr *end() noexcept { return calls + count; }
};

/* The command for a group of several. Belongs to whoever waits for its reply:
 * hiredis. */
class RedisBatch final : public RedisCommand {
  public:
    /* The calls are the carrier's; they must stay until the reply comes. */
    RedisBatch(CallCarrier &carrier, const CallGroup &group) noexcept;

    /* Room for the command: for what each has, all their keys and ids, and the
     * limits. */
    static constexpr size_t kMaxSize =
        4 * (CommandWriter::kAroundWord + 40)
        + kMaxLimitsInAnswer
              * (CommandWriter::kAroundWord + sizeof(RedisKey::data))
        + CallGroup::kMaxCalls * (CommandWriter::kAroundWord + kUuidSize)
        + ScriptText::kMaxShared;

    /* In Redis's protocol, to `text`. */
    std::string_view write(char (&text)[kMaxSize]) const noexcept;

  private:
    static void on_reply_to_all(RedisCommand *self, redisReply *reply) noexcept;

    CallCarrier &carrier_;
    RedisCall *calls_[CallGroup::kMaxCalls];
    size_t count_;
};

/* Calls of this turn of the event loop that may be joined. */
class CallCollector {
  public:
    void add(CallPtr call) noexcept { calls_.push(std::move(call)); }

    size_t size() const noexcept { return calls_.size(); }

    /* There are enough for a whole group: they need not wait for the end of the
     * turn. */
    bool has_enough() const noexcept
    {
        return calls_.size() >= CallGroup::kMaxCalls;
    }

    /* The oldest one and those that go with it; none if there are none. */
    CallGroup next_group() noexcept;

  private:
    RedisCall *next_alike(const RedisCall &call) const noexcept;

    CallQueue calls_;
};

}  // namespace sl
