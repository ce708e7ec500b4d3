/*
 * What the script (lua/script.lua) is called with for requests, how such a call
 * is written in Redis's protocol, and how its answer is read.
 */

#pragma once

#include "base/pure/sl_uuid.h"
#include "redis/pure/sl_key.h"
#include "redis/sl_command_writer.h"
#include "redis/sl_redis_context.h"
#include "store/sl_store.h"

namespace sl {

/* A limit as the script wants it. */
struct ScriptLimit {
    RedisKey key;
    int64_t window_us;
    int64_t max;
    int64_t cost;
    Algorithm algorithm;
    unsigned buckets;
    bool counts_refused;
    bool dry_run;

    /* When it is settled; see LimitQuery. */
    int64_t true_cost;
};

/* How a limit counts: a letter, and how many buckets. */
constexpr size_t kMaxKind = 1 + kMaxDigits;
std::string_view kind_word(Algorithm algorithm, unsigned buckets,
                           char (&room)[kMaxKind]) noexcept;

struct ScriptArgs {
    enum class Task {
        kCheck,
        kSettle,
        kTry, /* a check that shows whether the script can be executed */
    };

    ScriptLimit limits[kMaxLimits];
    size_t count;
    std::string_view id;
    Task task;

    /* The time of the answer whose counts are to be settled. */
    int64_t time_us;

    /* On a cluster, the slot of the keys. Elsewhere a number that decides which
     * connection is taken, if there are several. */
    unsigned slot;

    ScriptArgs() noexcept
        : limits(), count(0), task(Task::kCheck), time_us(0), slot(0)
    {}

    ScriptArgs(const Query &query, std::string_view prefix,
               KeyStyle style) noexcept;

    /*
     * Tries a server out, with windows of its own: whether it counts, and lets
     * this user do all that the script does. Without keys it changes nothing,
     * and every server can execute it.
     */
    static ScriptArgs probe(const RedisKey *keys, size_t count) noexcept;

    /* What has been counted of them becomes what the request has cost. */
    void settle(int64_t counted_at_us) noexcept
    {
        task = Task::kSettle;
        time_us = counted_at_us;
    }

    /* Those of the limits whose index is picked. */
    template <typename Predicate>
    ScriptArgs only(Predicate is_picked) const noexcept
    {
        ScriptArgs some;

        some.id = id;
        some.task = task;
        some.time_us = time_us;
        some.slot = slot;

        for (size_t i = 0; i < count; i++) {
            if (is_picked(i)) {
                some.limits[some.count++] = limits[i];
            }
        }

        return some;
    }
};

/* A call as an EVALSHA. */
class ScriptText {
  public:
    /* What the kinds of limits take: a letter, two rules and a '/'. */
    static constexpr size_t kMaxKinds =
        kMaxLimits * (kMaxKind + 1 + kMaxDigits + 3);

    /* The kinds of a check's limits, and their numbers: what calls that are
     * alike share. */
    static constexpr size_t shared_words(size_t limits) noexcept
    {
        return 1 + 2 * limits;
    }

    static constexpr size_t kMaxShared =
        CommandWriter::kAroundWord + kMaxKinds
        + kMaxLimits * 2 * (CommandWriter::kAroundWord + kMaxDigits);

    /* Room for any call: its first words, the keys, the limits, and what else a
     * task has. */
    static constexpr size_t kMaxSize =
        6 * (CommandWriter::kAroundWord + kUuidSize + 40)
        + kMaxLimits * (CommandWriter::kAroundWord + sizeof(RedisKey::data))
        + kMaxShared;

    /* Written to `room`, which outlives it. */
    ScriptText(const ScriptArgs &args, char (&room)[kMaxSize]) noexcept;

    std::string_view all() const noexcept { return all_; }

    /* Some of its words. */
    struct Part {
        size_t at;
        size_t size;

        std::string_view of(std::string_view all) const noexcept
        {
            return all.substr(at, size);
        }
    };

    /* The keys; what calls that are alike share; and the id, if a check needs
     * it. */
    const Part &keys() const noexcept { return keys_; }
    const Part &shared() const noexcept { return shared_; }
    const Part &id() const noexcept { return id_; }

  private:
    std::string_view all_;
    Part keys_;
    Part shared_;
    Part id_;
};

/*
 * What the script says about so many limits, of one request or of several.
 * False: that is not what it returns. `*misplaced` has a bit for each limit of
 * a request that was not decided about, because one of its keys holds a value
 * of another type.
 */
bool read_reply(const redisReply *reply, size_t limits, LimitState *states,
                int64_t *time_us, uint32_t *misplaced) noexcept;

}  // namespace sl
