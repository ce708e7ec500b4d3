/*
 * Compares what a store answers with what the model says, and with what must
 * hold for any answers; and tells the result as TAP.
 */

#pragma once

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <utility>
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

inline std::string describe(const Intervention &intervention)
{
    switch (intervention.act) {
    case Act::kLook:
        return "look";

    case Act::kForget:
        return "forget";

    case Act::kBan:
        return text("ban for %" PRId64, intervention.lasts);

    case Act::kOverride:
        return text("max %" PRId64 " for %" PRId64, intervention.max,
                    intervention.lasts);
    }

    return {};
}

/* As the script is told. */
inline std::string kind_of(const Limit &limit)
{
    static const char *const kFormats[] = {"l", "p", "b"};

    return kFormats[static_cast<size_t>(limit.algorithm)]
           + (limit.has_buckets() ? std::to_string(limit.buckets) : "")
           + (limit.cost == 1 ? "" : "*" + std::to_string(limit.cost))
           + (limit.counts_refused ? "d" : "") + (limit.dry_run ? "n" : "");
}

inline std::string describe(const Call &call, const Limit &limit)
{
    std::string line = text("%" PRId64 " ask", call.time);

    if (call.intervenes) {
        line = text("%" PRId64 " ", call.time) + describe(call.intervention);
    }

    if (call.settles) {
        line = text("%" PRId64 " settle with %" PRId64 " of %" PRId64,
                    call.time, limit.true_cost, call.then);
    }

    return line
           + text(" %" PRIx64 ": %s window %" PRId64 " max %" PRId64, call.id,
                  kind_of(limit).c_str(), limit.window, limit.max);
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

            if (call.intervenes) {
                const Standing &s = call.standing;

                line += text(": %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
                             " %" PRId64 " %" PRId64,
                             s.used, s.wait, s.ban_left, s.max, s.max_left,
                             s.entries);

                for (size_t k = 0; k < s.shown.size() && k < 4; k++) {
                    line +=
                        text(", %" PRId64 " %" PRId64 " %" PRIx64,
                             s.shown[k].ago, s.shown[k].units, s.shown[k].id);
                }
            } else if (call.settles) {
                line += text(": %d to %d of all", call.settled.at_least,
                             call.settled.at_most);
            } else {
                const Answer &a = call.answers[i];

                line += text(": %d %" PRId64 " %" PRId64 " %" PRId64, a.admits,
                             a.used, a.wait, a.ruled_max);
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
    uint64_t settled = 0;
    uint64_t not_settled = 0;
    uint64_t lowered = 0;
    uint64_t raised = 0;
    uint64_t steps_back = 0;
    uint64_t banned = 0;
    uint64_t overridden = 0;
    uint64_t forgotten = 0;

    bool has_all() const
    {
        return counted > 0 && looked > 0 && refused > 0 && refused_counted > 0
               && settled > 0 && not_settled > 0 && lowered > 0 && raised > 0
               && banned > 0 && overridden > 0 && forgotten > 0;
    }

    std::string describe() const
    {
        return text(
            "%" PRIu64 " counted, %" PRIu64 " looked, %" PRIu64
            " refused (%" PRIu64 " of them counted), %" PRIu64
            " settled and %" PRIu64 " not (%" PRIu64 " had cost less, %" PRIu64
            " more), the clock stepped back %" PRIu64 " times, %" PRIu64
            " banned, %" PRIu64 " with another max, %" PRIu64
            " forgotten by operators",
            counted, looked, refused, refused_counted, settled, not_settled,
            lowered, raised, steps_back, banned, overridden, forgotten);
    }
};

/* Judges what a store says in a round. */
class Judge {
  public:
    Judge(const Mix &mix, Tally *tally) : mix_(mix), tally_(*tally) {}

    /*
     * What is wrong with an answer, or nothing. For each limit it is admits,
     * used and wait, and then the time; after that, if an operator gave one of
     * the clients another max, for each limit that or 0. For settling it is of
     * how many something was changed.
     *
     * For an operator it is used, wait, ban_left, max, max_left and entries,
     * and then of each that is shown: ago, units and id.
     */
    std::string judge(const Call &call, const std::vector<int64_t> &numbers)
    {
        tally_.requests++;
        follow_clock(call.time);
        wrong_key_ = call.limits[0].key;

        if (call.settles) {
            return judge_settling(call, numbers);
        }

        if (call.intervenes) {
            return judge_standing(call, numbers);
        }

        size_t count = call.limits.size();
        bool is_ruled = numbers.size() == 4 * count + 1;

        if ((!is_ruled && numbers.size() != 3 * count + 1)
            || numbers[3 * count] != call.time)
        {
            return "no answer";
        }

        for (size_t i = 0; i < count; i++) {
            int64_t max = is_ruled ? numbers[3 * count + 1 + i] : 0;
            std::string wrong =
                judge(call, i,
                      {static_cast<int>(numbers[3 * i]), numbers[3 * i + 1],
                       numbers[3 * i + 2], max});

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
    /* According to the answers. */
    struct Counted {
        int64_t time;
        int64_t cost;
        uint64_t id;
        bool was_refused;
        int64_t true_cost; /* if that is less */

        /* What it has cost more, of which some may have been left out, or that
         * is said once more: it is not known from answers what is counted. */
        bool may_be_less = false;
    };

    const Mix &mix_;
    Tally &tally_;
    int wrong_key_ = 0;
    int64_t last_time_ = 0;

    /* Of a clock that goes on where the store's steps back, and when it last
     * did. */
    int64_t true_time_ = 0;
    int64_t stepped_at_ = -1;

    std::map<int, std::vector<Counted>> counted_;

    /* When it was first refused since the clock last stepped back. */
    std::map<int, int64_t> refused_since_;

    /* Those of whom more was counted when they were settled. */
    std::set<std::pair<uint64_t, int>> raised_;

    /* Where other requests' units may have been given back, or dropped while
     * there was another max: nobody can tell how many there should be. */
    std::set<int> loose_;

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

    std::string judge(const Call &call, size_t i, const Answer &answer)
    {
        const Limit &limit = call.limits[i];
        const Answer &expected = call.answers[i];

        count(limit, answer);

        if (answer.admits != expected.admits) {
            return "another decision";
        }

        if (answer.used != expected.used) {
            return "another use";
        }

        if (answer.wait != expected.wait) {
            return "another wait";
        }

        if (answer.ruled_max != expected.ruled_max) {
            return "another max";
        }

        if (answer.wait > std::max(limit.longest(), expected.ruled_for)) {
            return "a wait that is longer than anything counts";
        }

        return check_invariants(call, limit, answer);
    }

    void count(const Limit &limit, const Answer &answer)
    {
        tally_.banned += answer.admits == 3;
        tally_.overridden += answer.ruled_max != 0;
        tally_.counted += answer.admits == 2;
        tally_.looked += answer.admits == 1;
        tally_.refused += answer.admits == 0;
        tally_.refused_counted += answer.admits == 0 && limit.counts_refused;
    }

    std::string judge_settling(const Call &call,
                               const std::vector<int64_t> &numbers)
    {
        if (numbers.size() != 1 || numbers[0] < call.settled.at_least
            || numbers[0] > call.settled.at_most)
        {
            return "not as many were settled";
        }

        (numbers[0] > 0 ? tally_.settled : tally_.not_settled)++;

        for (const Limit &limit : call.limits) {
            settle(call, limit);
        }

        return {};
    }

    void settle(const Call &call, const Limit &limit)
    {
        std::vector<Counted> &all = counted_[limit.key];
        int64_t more = limit.true_cost - limit.cost;
        int64_t sum = more;
        bool is_found = false;

        tally_.lowered += more < 0 && limit.true_cost > 0;

        for (Counted &counted : all) {
            if (counted.id == call.id) {
                is_found = is_found || counted.true_cost == limit.cost;
                counted.true_cost =
                    std::min(counted.true_cost, limit.true_cost);
            }

            sum += counted.cost;
        }

        if (more < 0 && !limit.is_log() && (!is_found || mix_.steps_back)) {
            loose_.insert(limit.key);
        }

        if (more > 0) {
            bool is_known = !raised_.insert({call.id, limit.key}).second;

            tally_.raised++;
            all.push_back({true_time_, more, call.id, false, more,
                           is_known || sum > kMostUsed});
        }
    }

    std::string judge_standing(const Call &call,
                               const std::vector<int64_t> &numbers)
    {
        const Standing &s = call.standing;
        std::vector<int64_t> expected{s.used, s.wait,     s.ban_left,
                                      s.max,  s.max_left, s.entries};

        for (const Shown &shown : s.shown) {
            expected.push_back(shown.ago);
            expected.push_back(shown.units);
            expected.push_back(static_cast<int64_t>(shown.id));
        }

        if (call.intervention.act == Act::kForget) {
            tally_.forgotten++;
            counted_[call.limits[0].key].clear();
        }

        if (call.intervention.act == Act::kOverride
            && call.limits[0].counts_refused) {
            loose_.insert(call.limits[0].key);
        }

        return numbers == expected ? "" : "another standing";
    }

    /*
     * Straight from the answers, without the model.
     *
     * Never too many: when a request is admitted at t, what was admitted in
     * (t - window, t] is not more than max, this request with it. No window
     * has more in it than the one that ends with its last admitted request, but
     * for what requests have cost more than they seemed to when they were
     * admitted: that counts from the moment at which they were settled, so
     * those who come next have to leave room for it, too. What is to be given
     * back does not count from then on, whether the store has found it or not.
     *
     * Never too strict, where nothing is settled: a log refuses only if what
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
        int64_t max = answer.ruled_max != 0 ? answer.ruled_max : limit.max;
        int64_t now = true_time_;
        int64_t excused = excused_until(limit, answer);
        int64_t admitted = 0;
        int64_t all = 0;

        for (auto it = counted.rbegin(); it != counted.rend(); ++it) {
            bool is_excused = it->time <= stepped_at_ && now < excused;

            if (now - it->time >= limit.longest() && !is_excused) {
                continue;
            }

            all += it->cost;

            if (!it->was_refused && !it->may_be_less
                && now - it->time < limit.window) {
                admitted += std::min(it->cost, it->true_cost);
            }
        }

        if (is_counted) {
            counted.push_back(
                {now, limit.cost, call.id, answer.admits == 0, limit.cost});
        }

        if (answer.admits == 2 && admitted + limit.cost > max
            && loose_.count(limit.key) == 0)
        {
            return "more in a window than is allowed";
        }

        if (answer.admits == 0 && all + limit.cost <= max && !mix_.take_backs) {
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

        return since->second + limit.longest();
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
    const Call &call = round.calls[last];

    for (const Limit &limit : call.limits) {
        /* which of them was not settled is not said */
        if (limit.key != key && !call.settles) {
            continue;
        }

        std::vector<std::string> lines = history(round, limit.key, last);
        size_t first = lines.size() > kLines ? lines.size() - kLines : 0;

        tap->note(text("%s: %s, after %zu calls and these:", round.mix->title,
                       wrong.c_str(), first));

        for (size_t i = first; i < lines.size(); i++) {
            tap->note("  " + lines[i]);
        }
    }
}

inline uint64_t number_from_environment(const char *name, uint64_t otherwise)
{
    const char *value = getenv(name);

    return value != nullptr && *value != '\0' ? strtoull(value, nullptr, 10)
                                              : otherwise;
}

}  // namespace sl_model
