/*
 * What lua/sliding_window.lua is called with, how such a call is written in
 * Redis's protocol, and how its answer is read.
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

    /* It is to be kept who was counted, where that is not done anyway. */
    bool keeps_ids;

    /* When it is settled; see LimitQuery. */
    int64_t true_cost;
};

/* What the scripts call an algorithm; written to `room`, if it has to be. */
std::string_view algorithm_word(Algorithm algorithm, unsigned buckets,
                                char (&room)[kMaxDigits]) noexcept;

struct ScriptArgs {
    static constexpr int64_t kAsk = -1;
    static constexpr int64_t kTryOut = -2;

    ScriptLimit limits[kMaxLimits];
    size_t count;
    std::string_view id;

    /* kAsk or kTryOut, or the time of the answer whose counts are to be
     * settled. */
    int64_t time_us;

    /* On a cluster, the slot of the keys. Elsewhere a number that decides which
     * connection is taken, if there are several. */
    unsigned slot;

    ScriptArgs() noexcept : limits(), count(0), time_us(kAsk), slot(0) {}

    ScriptArgs(const Query &query, int64_t time, std::string_view prefix,
               KeyStyle style) noexcept;

    /*
     * A check that tries a server out, with windows of its own: whether it
     * counts, and lets this user do all that the script does. Without keys it
     * changes nothing, and every server can execute it.
     */
    static ScriptArgs probe(const RedisKey *keys, size_t count) noexcept;

    /* Those of the limits whose index is picked. */
    template <typename Predicate>
    ScriptArgs only(Predicate is_picked) const noexcept
    {
        ScriptArgs some;

        some.id = id;
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

/* A call as an EVALSHA; the script says what it is made of. */
class ScriptText {
  public:
    /* The short form is for questions that the script calls ordinary; others
     * have only the full one. Their answers are written differently, too. */
    enum class Form { kShortest, kFull };

    /* What limits are in the short form: a word for all algorithms, and the
     * window and the max of each. */
    static constexpr size_t kMaxShortLimits =
        CommandWriter::kAroundWord
        + kMaxLimits
              * (1 + kMaxDigits
                 + 2 * (CommandWriter::kAroundWord + kMaxDigits));

    /* The letters of a rule. */
    static constexpr size_t kMaxRule = 3;

    /* Room for any call: what each has, and what a limit adds. */
    static constexpr size_t kMaxSize =
        6 * (CommandWriter::kAroundWord + kUuidSize + 40)
        + kMaxLimits
              * (6 * CommandWriter::kAroundWord + sizeof(RedisKey::data)
                 + 4 * kMaxDigits + kMaxRule);

    /* Written to `room`, which outlives it. */
    ScriptText(const ScriptArgs &args, char (&room)[kMaxSize],
               Form form = Form::kShortest) noexcept;

    std::string_view all() const noexcept { return all_; }

    bool is_short() const noexcept { return is_short_; }

    /* Some of its words. */
    struct Part {
        size_t at;
        size_t size;

        std::string_view of(std::string_view all) const noexcept
        {
            return all.substr(at, size);
        }
    };

    /* The keys, all that the limits are, and the id, if it is sent. */
    const Part &keys() const noexcept { return keys_; }
    const Part &limits() const noexcept { return limits_; }
    const Part &id() const noexcept { return id_; }

  private:
    std::string_view all_;
    bool is_short_;
    Part keys_;
    Part limits_;
    Part id_;
};

/*
 * What the script says about so many limits, of one request or of several.
 * False: that is not what it returns. `*undecided` has a bit for each limit of
 * a request that it has not decided about, and wants to be asked about once
 * more, alone.
 */
bool read_reply(const redisReply *reply, size_t limits, LimitState *states,
                int64_t *time_us, uint32_t *undecided) noexcept;

}  // namespace sl
