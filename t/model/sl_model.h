/*
 * What a store has to answer, worked out the slow way: what was counted is kept
 * with its time, and whatever is asked is added up anew from all of it. A
 * request of cost 5 is five units of one moment.
 *
 * It follows what lua/ says about each format, and knows nothing of how counts
 * are kept; but for what is noticed when, if the clock steps back. Units are
 * then from the future, and become units of now: in buckets and packed logs
 * whenever somebody looks, in logs when a request finds no room. From buckets
 * up to one in which some of these were counted nothing is given back any more,
 * because nobody could tell whose they are.
 *
 * Units that have left can come back with the clock where they are still there:
 * logs remove them whenever somebody looks, the others when something changes.
 */

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

namespace sl_model {

/* More is never used of a limit. */
constexpr int64_t kMostUsed = 9000000000000000;

/* So many units are dropped, removed or brought back at a time. */
constexpr int64_t kMostAtATime = 1000;

constexpr size_t kMostShown = 100;

enum class Algorithm { kLog, kPacked, kBuckets };

/* What one request asks of one limit; times are in microseconds. */
struct Limit {
    int key;
    int64_t window;
    int64_t max;
    int64_t cost; /* 0 only looks */
    Algorithm algorithm;
    int64_t buckets; /* 0 where there are none */
    bool counts_refused;
    bool dry_run;

    /* When it is settled: instead of `cost`. */
    int64_t true_cost = 0;

    bool is_log() const { return algorithm == Algorithm::kLog; }
    bool has_buckets() const { return algorithm == Algorithm::kBuckets; }

    /* Of a bucket: so that all of them are at least a window. */
    int64_t width() const { return (window + buckets - 1) / buckets; }

    /* What is kept of a time: in buckets, when its bucket began. */
    int64_t stamp(int64_t time) const
    {
        return has_buckets() ? time / width() * width() : time;
    }

    /* The longest that anything counts: a bucket leaves as a whole, when all of
     * it is a window old. */
    int64_t longest() const
    {
        return has_buckets() ? (buckets + 1) * width() : window;
    }
};

struct Answer {
    int admits; /* 0: no room, 1: there is, 2: and it was counted, 3: banned */
    int64_t used;
    int64_t wait;

    /* That an operator gave the client; 0: none. */
    int64_t ruled_max = 0;

    /* For how long operators have ruled about the client. */
    int64_t ruled_for = 0;

    bool is_refusal() const { return admits == 0 || admits == 3; }
};

/* What an operator does about a client. */
enum class Act { kLook, kForget, kBan, kOverride };

struct Intervention {
    Act act;
    int64_t lasts; /* 0 lifts */
    int64_t max;
};

/* A counted request, or a bucket. */
struct Shown {
    int64_t ago;
    int64_t units;
    uint64_t id; /* 0: nobody's */
};

/* Where a client stands; what is 0 is not there. */
struct Standing {
    int64_t used;
    int64_t wait;
    int64_t ban_left;
    int64_t max;
    int64_t max_left;
    int64_t entries; /* units, or buckets */

    /* The newest first. */
    std::vector<Shown> shown;
};

/* Of how many limits the counts were changed by settling. */
struct Settled {
    int at_least;
    int at_most;
};

class Model {
  public:
    /* Operators are shown requests of the newest units: so many. */
    explicit Model(int64_t shows_units) : shows_units_(shows_units) {}

    std::vector<Answer> ask(int64_t now, uint64_t id,
                            const std::vector<Limit> &limits)
    {
        std::vector<bool> admits;
        std::vector<Answer> answers;
        bool passes = true;

        for (const Limit &limit : limits) {
            read(now, limit);
            admits.push_back(fits(now, limit) && !is_banned(now, limit));
            passes = passes && (admits.back() || limit.dry_run);
        }

        for (size_t i = 0; i < limits.size(); i++) {
            const Limit &limit = limits[i];
            bool is_counted =
                admits[i] ? passes && limit.cost > 0
                          : limit.counts_refused && !is_banned(now, limit);

            if (is_counted) {
                add(now, limit, {limit.stamp(now), limit.cost, id, false});
            }

            if (is_counted && !admits[i] && !limit.has_buckets()) {
                drop_surplus(now, limit);
            }

            Answer answer;
            answer.admits = is_banned(now, limit) ? 3
                            : !admits[i]          ? 0
                            : is_counted          ? 2
                                                  : 1;
            answer.used = used(now, limit);
            answer.wait = admits[i] ? until_units_leave(now, limit, 1)
                                    : until_admitted(now, limit);
            answer.ruled_max = is_overridden(now, limit) ? max(now, limit) : 0;
            answer.ruled_for = ruled_for(now, limit);
            answers.push_back(answer);
        }

        return answers;
    }

    /* The request that was counted as `id` at `then`. */
    Settled settle(int64_t now, int64_t then, uint64_t id,
                   const std::vector<Limit> &limits)
    {
        Settled result{0, 0};

        for (const Limit &limit : limits) {
            bool is_changed = true;

            read(now, limit);

            if (limit.true_cost > limit.cost) {
                raise(now, id, limit);
            } else {
                is_changed =
                    limit.true_cost < limit.cost && lower(now, then, id, limit);
            }

            result.at_least += is_changed;
            result.at_most += is_changed || (may_lag_ && limit.is_log());
        }

        return result;
    }

    /* What an operator does, and where the client stands then. */
    Standing intervene(int64_t now, const Limit &limit,
                       const Intervention &intervention)
    {
        Ruling &ruling = rulings_[limit.key];
        int64_t until = intervention.lasts > 0 ? now + intervention.lasts : 0;

        read(now, limit);

        switch (intervention.act) {
        case Act::kLook:
            return standing(now, limit);

        case Act::kForget:
            keys_.erase(limit.key);
            moved_.erase(limit.key);
            ruling.ban_until = 0;
            break;

        case Act::kBan:
            ruling.ban_until = until;
            break;

        case Act::kOverride:
            ruling.max = intervention.max;
            ruling.max_until = until;
            break;
        }

        remove_what_has_left(now, limit);
        return standing(now, limit);
    }

    /* Of units that have not left a log when somebody last looked. */
    int64_t size(int key)
    {
        int64_t sum = 0;

        for (const Entry &entry : keys_[key]) {
            sum += entry.units;
        }

        return sum;
    }

    /* The most units that were counted at a time, and all that ever were. */
    struct Counts {
        int64_t most = 0;
        int64_t all = 0;
    };

    Counts counts(int key) { return counts_[key]; }

    /* Once so many units of logs have left at a time that not all of them may
     * have been removed. */
    bool may_lag() const { return may_lag_; }

  private:
    struct Entry {
        int64_t time;
        int64_t units;
        uint64_t id;   /* 0: nobody asks */
        bool is_later; /* counted when it was settled */

        bool operator<(const Entry &other) const
        {
            return std::tie(time, id, is_later)
                   < std::tie(other.time, other.id, other.is_later);
        }
    };

    /* Each holds until its moment. */
    struct Ruling {
        int64_t ban_until = 0;
        int64_t max = 0;
        int64_t max_until = 0;
    };

    static constexpr int64_t kNever = INT64_MAX;

    /* Oldest first, and as Redis sorts what is of one moment. */
    using Entries = std::vector<Entry>;

    int64_t shows_units_;
    std::map<int, Entries> keys_;
    std::map<int, Counts> counts_;
    std::map<int, Ruling> rulings_;
    bool may_lag_ = false;

    /* The latest bucket in which units from the future were counted. */
    std::map<int, int64_t> moved_;

    void read(int64_t now, const Limit &limit)
    {
        limit.is_log() ? remove_what_has_left(now, limit)
                       : bring_back(now, limit);
    }

    void remove_what_has_left(int64_t now, const Limit &limit)
    {
        Entries &entries = keys_[limit.key];
        auto moved = moved_.find(limit.key);
        auto end = first(now, limit);

        if (limit.is_log() && end != entries.begin() && !may_lag_) {
            int64_t sum = 0;

            for (const auto &key : keys_) {
                sum += size(key.first);
            }

            may_lag_ = sum > kMostAtATime;
        }

        entries.erase(entries.begin(), end);

        if (moved != moved_.end() && moved->second + limit.longest() <= now) {
            moved_.erase(moved);
        }
    }

    /* What is from the future is of now. */
    void bring_back(int64_t now, const Limit &limit)
    {
        Entries &entries = keys_[limit.key];
        int64_t stamp = limit.stamp(now);

        if (entries.empty() || entries.back().time <= stamp) {
            return;
        }

        for (Entry &entry : entries) {
            if (entry.time > stamp && limit.has_buckets()) {
                moved_[limit.key] = std::max(moved_[limit.key], entry.time);
            }

            entry.time = std::min(entry.time, stamp);
        }

        std::stable_sort(entries.begin(), entries.end());

        if (limit.has_buckets()) {
            remove_what_has_left(now, limit);
        }
    }

    void add(int64_t now, const Limit &limit, Entry entry)
    {
        remove_what_has_left(now, limit);

        Entries &entries = keys_[limit.key];
        Counts &counts = counts_[limit.key];

        entry.id = limit.is_log() ? entry.id : 0;
        entry.units = std::min(entry.units, kMostUsed - used(now, limit));

        if (entry.units > 0) {
            entries.insert(
                std::upper_bound(entries.begin(), entries.end(), entry), entry);
        }

        counts.most = std::max(counts.most, size(limit.key));
        counts.all += entry.units;
    }

    /* Where refused requests count, the newest units decide. */
    void drop_surplus(int64_t now, const Limit &limit)
    {
        Entries &entries = keys_[limit.key];
        int64_t most = std::max(limit.max, max(now, limit));
        int64_t surplus = std::min(used(now, limit) - most, kMostAtATime);

        while (surplus > 0) {
            int64_t units = std::min(surplus, entries.front().units);

            surplus -= units;
            entries.front().units -= units;
            remove_empty(&entries);
        }
    }

    static void remove_empty(Entries *entries)
    {
        entries->erase(
            std::remove_if(entries->begin(), entries->end(),
                           [](const Entry &entry) { return entry.units == 0; }),
            entries->end());
    }

    /* The oldest one in the window. */
    Entries::iterator first(int64_t now, const Limit &limit)
    {
        Entries &entries = keys_[limit.key];

        return std::find_if(entries.begin(), entries.end(),
                            [&](const Entry &entry) {
                                return entry.time + limit.longest() > now;
                            });
    }

    int64_t used(int64_t now, const Limit &limit)
    {
        int64_t sum = 0;

        for (auto it = first(now, limit); it != keys_[limit.key].end(); ++it) {
            sum += it->units;
        }

        return sum;
    }

    /* How long until so many have left; 0: there are not as many. */
    int64_t until_units_leave(int64_t now, const Limit &limit, int64_t units)
    {
        for (auto it = first(now, limit); it != keys_[limit.key].end(); ++it) {
            units -= it->units;

            if (units <= 0) {
                return std::min(it->time - now, int64_t{0}) + limit.longest();
            }
        }

        return 0;
    }

    bool is_banned(int64_t now, const Limit &limit)
    {
        return rulings_[limit.key].ban_until > now;
    }

    bool is_overridden(int64_t now, const Limit &limit)
    {
        return rulings_[limit.key].max_until > now;
    }

    /* That the client has now. */
    int64_t max(int64_t now, const Limit &limit)
    {
        return is_overridden(now, limit) ? rulings_[limit.key].max : limit.max;
    }

    bool fits(int64_t now, const Limit &limit)
    {
        return limit.cost == 0
               || used(now, limit) + limit.cost <= max(now, limit);
    }

    int64_t ruled_for(int64_t now, const Limit &limit)
    {
        const Ruling &ruling = rulings_[limit.key];

        return std::max({ruling.ban_until, ruling.max_until, now}) - now;
    }

    /* Of a request that is not: by what is counted, and by what was ruled. */
    int64_t until_admitted(int64_t now, const Limit &limit)
    {
        int64_t wait = fits(now, limit) ? 0 : until_it_fits(now, limit);

        wait = wait == kNever ? 0 : wait;

        return is_banned(now, limit)
                   ? std::max(wait, rulings_[limit.key].ban_until - now)
                   : wait;
    }

    /* With the other max while that holds, and then with the limit's own. */
    int64_t until_it_fits(int64_t now, const Limit &limit)
    {
        int64_t wait = until_there_is_room(now, limit, max(now, limit));
        int64_t left = rulings_[limit.key].max_until - now;

        return is_overridden(now, limit) && wait > left
                   ? std::max(left, until_there_is_room(now, limit, limit.max))
                   : wait;
    }

    int64_t until_there_is_room(int64_t now, const Limit &limit, int64_t max)
    {
        int64_t units = used(now, limit) + limit.cost - max;

        if (limit.cost > max) {
            return kNever;
        }

        if (units <= 0) {
            return 0;
        }

        bring_back(now, limit);
        return until_units_leave(now, limit, units);
    }

    Standing standing(int64_t now, const Limit &limit)
    {
        const Ruling &ruling = rulings_[limit.key];
        Standing standing{};

        standing.used = used(now, limit);
        standing.wait = until_units_leave(now, limit, 1);

        if (is_banned(now, limit)) {
            standing.ban_left = ruling.ban_until - now;
        }

        if (is_overridden(now, limit)) {
            standing.max = ruling.max;
            standing.max_left = ruling.max_until - now;
        }

        show(now, limit, &standing);

        return standing;
    }

    /* All units of a request that were counted at one time are one. */
    void show(int64_t now, const Limit &limit, Standing *standing)
    {
        Entries &entries = keys_[limit.key];
        Entries::reverse_iterator end(first(now, limit));
        std::vector<Shown> &shown = standing->shown;
        int64_t rest = limit.has_buckets() ? kNever : shows_units_;
        int64_t buckets = 0;
        const Entry *last = nullptr;

        for (auto it = entries.rbegin(); it != end; ++it) {
            bool goes_on =
                last != nullptr && last->time == it->time && last->id == it->id;
            int64_t units = std::min(it->units, rest);

            buckets += last == nullptr || last->time != it->time;
            rest -= units;

            if (goes_on) {
                shown.back().units += units;
            } else if (units > 0) {
                shown.push_back(
                    {std::max<int64_t>(0, now - it->time), units, it->id});
            }

            last = &*it;
        }

        standing->entries = limit.has_buckets() ? buckets : standing->used;
        shown.resize(std::min(shown.size(), kMostShown));
    }

    /* What a request has cost more: in a log once, as of when that was last
     * said. */
    void raise(int64_t now, uint64_t id, const Limit &limit)
    {
        Entries &entries = keys_[limit.key];

        for (Entry &entry : entries) {
            if (limit.is_log() && entry.id == id && entry.is_later) {
                entry.units = 0;
            }
        }

        remove_empty(&entries);
        add(now, limit,
            {limit.stamp(now), limit.true_cost - limit.cost, id,
             limit.is_log()});
    }

    /* What it has cost less. A log knows whose units are whose, the others when
     * they were counted. */
    bool lower(int64_t now, int64_t then, uint64_t id, const Limit &limit)
    {
        Entries &entries = keys_[limit.key];
        auto moved = moved_.find(limit.key);
        int64_t stamp = limit.stamp(then);
        int64_t less = limit.cost - limit.true_cost;
        bool is_changed = false;

        if (moved != moved_.end() && stamp <= moved->second) {
            return false;
        }

        for (auto it = first(now, limit); it != entries.end(); ++it) {
            if (limit.is_log() && it->id == id && !it->is_later) {
                is_changed = it->units > limit.true_cost;
                it->units = std::min(it->units, limit.true_cost);
            } else if (!limit.is_log() && it->time == stamp) {
                int64_t taken = std::min(less, it->units);

                is_changed = is_changed || taken > 0;
                it->units -= taken;
                less -= taken;
            }
        }

        remove_empty(&entries);

        if (is_changed) {
            remove_what_has_left(now, limit);
        }

        return is_changed;
    }
};

}  // namespace sl_model
