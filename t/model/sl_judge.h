/*
 * Compares what a store answers with what the model says, and with what must
 * hold for any answers; and tells the result as TAP.
 */

#pragma once

#include <cinttypes>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "sl_model.h"
#include "sl_schedule.h"

namespace sl_model {

__attribute__((format(printf, 1, 2))) inline std::string text(
    const char *format, ...)
{
    char buffer[512];
    va_list args;

    va_start(args, format);
    vsnprintf(buffer, sizeof(buffer), format, args);
    va_end(args);

    return buffer;
}

inline std::string describe(const Call &call, const Limit &limit)
{
    std::string line = text("%" PRId64 " ask", call.time);

    if (call.takes_back) {
        line = text("%" PRId64 " take back of %" PRId64, call.time, call.then);
    }

    return line
           + text(" %" PRIu64 ": window %" PRId64 " max %" PRId64
                  " cost %" PRId64 " buckets %" PRId64 " rule '%s%s'",
                  call.id, limit.window, limit.max, limit.cost, limit.buckets,
                  limit.counts_refused ? "d" : "", limit.dry_run ? "n" : "");
}

/* The calls about `key` up to one of them, with what the model says to each. */
inline std::vector<std::string> history(const Round &round, int key,
                                        size_t last)
{
    std::vector<std::string> lines;

    for (size_t n = 0; n <= last; n++) {
        const Call &call = round.calls[n];

        for (size_t i = 0; i < call.limits.size(); i++) {
            if (call.limits[i].key != key) {
                continue;
            }

            std::string line = describe(call, call.limits[i]);

            if (!call.takes_back) {
                line +=
                    text(": %d %" PRId64 " %" PRId64, call.answers[i].admits,
                         call.answers[i].used, call.answers[i].wait);
            }

            lines.push_back(line);
        }
    }

    return lines;
}

/* How often what came about: a test in which nothing happens proves nothing. */
struct Tally {
    uint64_t requests = 0;
    uint64_t counted = 0;
    uint64_t looked = 0;
    uint64_t refused = 0;
    uint64_t refused_counted = 0;
    uint64_t taken_back = 0;
    uint64_t not_taken_back = 0;
    uint64_t with_forgotten = 0;
    uint64_t short_waits = 0;
    uint64_t seeming_uses = 0;
    uint64_t steps_back = 0;

    bool has_all() const
    {
        return counted > 0 && looked > 0 && refused > 0 && refused_counted > 0
               && taken_back > 0 && not_taken_back > 0 && with_forgotten > 0
               && short_waits > 0 && seeming_uses > 0 && steps_back > 0;
    }

    std::string describe() const
    {
        return text("%" PRIu64 " counted, %" PRIu64 " looked, %" PRIu64
                    " refused (%" PRIu64 " of them counted), %" PRIu64
                    " taken back and %" PRIu64 " not, %" PRIu64
                    " with some forgotten, %" PRIu64
                    " waits too short, %" PRIu64
                    " uses too high, the clock stepped back %" PRIu64 " times",
                    counted, looked, refused, refused_counted, taken_back,
                    not_taken_back, with_forgotten, short_waits, seeming_uses,
                    steps_back);
    }
};

/* Judges what a store says in a round. */
class Judge {
  public:
    Judge(const Mix &mix, Tally *tally)
        : mix_(mix), tally_(*tally), wrong_key_(0), last_time_(0),
          true_time_(0), stepped_at_(-1)
    {}

    /* What is wrong with an answer, or nothing. For each limit it is admits,
     * used and wait, and then the time; for taking back, how many were. */
    std::string judge(const Call &call, const std::vector<int64_t> &numbers)
    {
        tally_.requests++;
        follow_clock(call.time);
        wrong_key_ = call.limits[0].key;

        if (call.takes_back) {
            return judge_taking_back(call, numbers);
        }

        if (numbers.size() != 3 * call.limits.size() + 1
            || numbers.back() != call.time) {
            return "no answer";
        }

        for (size_t i = 0; i < call.limits.size(); i++) {
            std::string wrong = judge(call, i,
                                      {static_cast<int>(numbers[3 * i]),
                                       numbers[3 * i + 1], numbers[3 * i + 2]});

            if (!wrong.empty()) {
                wrong_key_ = call.limits[i].key;
                return wrong;
            }
        }

        return {};
    }

    /* Where something was wrong. */
    int wrong_key() const { return wrong_key_; }

  private:
    const Mix &mix_;
    Tally &tally_;
    int wrong_key_;
    int64_t last_time_;

    /* Of a clock that goes on where the store's steps back, and when it last
     * did. */
    int64_t true_time_;
    int64_t stepped_at_;

    void follow_clock(int64_t now)
    {
        if (now < last_time_) {
            tally_.steps_back++;
            stepped_at_ = true_time_++;
        } else if (last_time_ > 0) {
            true_time_ += now - last_time_;
        }

        last_time_ = now;
    }

    /* According to the answers. */
    struct Counted {
        int64_t time;
        int64_t cost;
        uint64_t id;
        bool was_refused;
        bool is_taken_back;
    };

    std::map<int, std::vector<Counted>> counted_;

    /* When it was first refused since the clock last stepped back. */
    std::map<int, int64_t> refused_since_;

    /* The longest that anything counts. */
    static int64_t longest(const Limit &limit)
    {
        return limit.buckets == 0 ? limit.window
                                  : (limit.buckets + 1) * limit.width();
    }

    std::string judge(const Call &call, size_t i, const Answer &answer)
    {
        const Limit &limit = call.limits[i];
        std::string wrong;

        count(limit, answer);

        if (answer.wait > longest(limit)) {
            return "a wait that is longer than anything counts";
        }

        if (mix_.checks != Checks::kInvariants) {
            wrong = compare(call, i, answer);
        }

        if (wrong.empty()) {
            wrong = check_invariants(call, limit, answer);
        }

        return wrong;
    }

    std::string judge_taking_back(const Call &call,
                                  const std::vector<int64_t> &numbers)
    {
        if (numbers.size() != 1 || numbers[0] < call.taken_back.at_least
            || numbers[0] > call.taken_back.at_most)
        {
            return "not as many were taken back";
        }

        (numbers[0] > 0 ? tally_.taken_back : tally_.not_taken_back)++;

        for (const Limit &limit : call.limits) {
            for (Counted &counted : counted_[limit.key]) {
                counted.is_taken_back =
                    counted.is_taken_back || counted.id == call.id;
            }
        }

        return {};
    }

    void count(const Limit &limit, const Answer &answer)
    {
        tally_.counted += answer.admits == 2;
        tally_.looked += answer.admits == 1;
        tally_.refused += answer.admits == 0;
        tally_.refused_counted += answer.admits == 0 && limit.counts_refused;
    }

    std::string compare(const Call &call, size_t i, const Answer &answer)
    {
        const Answer &expected = call.answers[i];
        const Limit &limit = call.limits[i];

        if (answer.admits != expected.admits) {
            return "another decision";
        }

        if (answer.used > expected.used && call.may_seem_used[i]) {
            tally_.seeming_uses++;
        } else if (answer.used != expected.used) {
            /* the newest max of them must be there: then the forgotten ones
             * cannot have been what decides */
            if (!call.may_forget[i] || answer.used > expected.used
                || answer.used < limit.max)
            {
                return "another use";
            }

            tally_.with_forgotten++;

            /* who only looked may not see the oldest any more */
            if (answer.admits && answer.wait >= expected.wait) {
                return {};
            }
        }

        if (answer.wait == expected.wait) {
            return {};
        }

        bool may_be_short =
            call.may_be_short
            || (mix_.checks == Checks::kLongWaits && call.sizes[i] > 1000);

        if (may_be_short && mix_.costs && limit.buckets == 0 && !answer.admits
            && answer.wait > 0 && answer.wait < expected.wait)
        {
            tally_.short_waits++;
            return {};
        }

        return "another wait";
    }

    /*
     * Straight from the answers, without the model.
     *
     * Never too many: when a request is admitted at t, what was admitted in
     * (t - window, t] is not more than max, this request with it. No window
     * has more in it than the one that ends with its last admitted request.
     * What is to be taken back does not count from then on, whether the store
     * has found it or not.
     *
     * Never too strict, where nothing is taken back: a log refuses only if what
     * it counted in that window leaves no room. Buckets may count what is
     * older, but not by more than a bucket: they refuse only if a log whose
     * window is their (buckets + 1) * width, to which the same requests were
     * counted, would refuse, too. That is one bucket more than the window,
     * where the window is a multiple of their number, and otherwise up to a
     * microsecond more for each bucket.
     *
     * Where the clock has stepped back, what was counted before may count for
     * longer, but only as long after the first refusal since then.
     */
    std::string check_invariants(const Call &call, const Limit &limit,
                                 const Answer &answer)
    {
        std::vector<Counted> &counted = counted_[limit.key];
        bool is_counted =
            answer.admits == 2 || (answer.admits == 0 && limit.counts_refused);
        int64_t now = true_time_;
        int64_t excused = excused_until(limit, answer);
        int64_t admitted = 0;
        int64_t all = 0;

        for (auto it = counted.rbegin(); it != counted.rend(); ++it) {
            bool is_excused = it->time <= stepped_at_ && now < excused;

            if (now - it->time >= longest(limit) && !is_excused) {
                continue;
            }

            all += it->cost;

            if (!it->was_refused && !it->is_taken_back
                && now - it->time < limit.window) {
                admitted += it->cost;
            }
        }

        if (is_counted) {
            counted.push_back(
                {now, limit.cost, call.id, answer.admits == 0, false});
        }

        if (answer.admits == 2 && admitted + limit.cost > limit.max) {
            return "more in a window than is allowed";
        }

        if (answer.admits == 0 && all + limit.cost <= limit.max
            && !mix_.take_backs) {
            return "refused though there is room";
        }

        return {};
    }

    /* Until when what was counted before the clock stepped back may count. */
    int64_t excused_until(const Limit &limit, const Answer &answer)
    {
        auto since = refused_since_.find(limit.key);
        bool is_known =
            since != refused_since_.end() && since->second > stepped_at_;

        if (!is_known && answer.admits != 0) {
            return true_time_;
        }

        if (!is_known) {
            since =
                refused_since_.insert_or_assign(limit.key, true_time_).first;
        }

        return since->second + longest(limit);
    }
};

class Tap {
  public:
    void ok(bool is_ok, const std::string &sentence)
    {
        printf("%sok %d - %s\n", is_ok ? "" : "not ", ++count_,
               sentence.c_str());
        fflush(stdout);
        all_ok_ = all_ok_ && is_ok;
    }

    void note(const std::string &line) { printf("# %s\n", line.c_str()); }

    bool end()
    {
        printf("1..%d\n", count_);
        return all_ok_;
    }

  private:
    int count_ = 0;
    bool all_ok_ = true;
};

/* A difference, and what led to it. */
inline void report(Tap *tap, const Round &round, int key, size_t last,
                   const std::string &wrong)
{
    constexpr size_t kLines = 12;
    std::vector<std::string> lines = history(round, key, last);
    size_t first = lines.size() > kLines ? lines.size() - kLines : 0;

    tap->note(text("%s: %s, after %zu calls and these:", round.mix->title,
                   wrong.c_str(), first));

    for (size_t i = first; i < lines.size(); i++) {
        tap->note("  " + lines[i]);
    }
}

inline uint64_t number_from_environment(const char *name, uint64_t otherwise)
{
    const char *value = getenv(name);

    return value != nullptr && *value != '\0' ? strtoull(value, nullptr, 10)
                                              : otherwise;
}

}  // namespace sl_model
