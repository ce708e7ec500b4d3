/*
 * What a store has to answer, worked out the slow way: every counted request is
 * kept with its time, and whatever is asked is added up anew from all of them.
 *
 * If the clock steps back there are requests from the future. They were counted
 * before, so from the moment at which that is noticed they count as of then. In
 * buckets and packed logs it is noticed by whoever asks; in a log when a
 * request finds no room, or nothing that is older. From buckets in which
 * something was moved nothing is given back any more, because nobody could tell
 * whose counts are there.
 *
 * Logs of both kinds may take turns, and nothing changes by that. Buckets
 * cannot be made of a log, nor a log of buckets: then all is counted anew.
 *
 * It knows nothing of how a store keeps its counts. What it leaves open is left
 * open on purpose: giving back what has already left the window changes nothing
 * that anybody could notice, so a store may say that it did or that it did not.
 *
 * What a request has cost may be known only when it has ended: then it is
 * settled. What is less is given back from where it was counted, and if that is
 * all, it is taken back; what is more is counted as of then, once, whether
 * there is room for it or not. Nothing is counted beyond kMostUsed.
 *
 * Operators step in: they ban a client for a while, give it another max for a
 * while, lift both, and forget what was counted. Who is banned is refused and
 * not counted, whatever counts otherwise.
 */

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace sl_model {

/* More is never used of a limit. */
constexpr int64_t kMostUsed = 9000000000000000;

/* What is kept of requests: each one's time and id, or its time and only on
 * demand its id, or how many there were in a part of the window. */
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

    /* Only a packed log has to know before. */
    bool may_be_settled;

    /* When it is settled: instead of `cost`. */
    int64_t true_cost = 0;

    bool has_buckets() const { return algorithm == Algorithm::kBuckets; }

    bool keeps_id() const
    {
        return algorithm == Algorithm::kLog
               || (algorithm == Algorithm::kPacked && may_be_settled);
    }

    /* Of a bucket: so that all of them are at least a window. */
    int64_t width() const { return (window + buckets - 1) / buckets; }

    /* The first moment at which what was counted at `time` is not in the
     * window. A bucket leaves as a whole: all of it must be a window old. */
    int64_t leaves_at(int64_t time) const
    {
        if (!has_buckets()) {
            return time + window;
        }

        return (time / width() + 1 + buckets) * width();
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

/* A counted request, or a bucket: then it is as old as that is. */
struct Shown {
    int64_t ago;
    int64_t cost;
    bool was_refused;
    uint64_t id; /* 0: nobody's */

    /* Nobody needs to know whose it is, but somebody may. */
    bool may_be_nobodys;
};

/* Where a client stands; what is 0 is not there. */
struct Standing {
    int64_t used;
    int64_t wait;
    int64_t ban_left;
    int64_t max;
    int64_t max_left;

    /* All of them, newest first. */
    std::vector<Shown> entries;
};

/* Of how many limits the counts were changed by settling. */
struct Settled {
    int at_least;
    int at_most;
};

class Model {
  public:
    /* Of more requests than that in a log that is not packed, all from the
     * future, it is not known any more whose they are. */
    explicit Model(size_t tells_apart = SIZE_MAX) : tells_apart_(tells_apart) {}

    std::vector<Answer> ask(int64_t now, uint64_t id,
                            const std::vector<Limit> &limits)
    {
        std::vector<bool> admits;
        bool passes = true;

        touched_ = 0;

        for (const Limit &limit : limits) {
            start_anew_if_changed(limit);

            size_t before = size(limit.key);

            drop_what_has_left(now, limit);
            passed_[limit.key] = {before - size(limit.key), size(limit.key)};
            touched_ += before + size(limit.key) + 1;

            admits.push_back(fits(now, limit) && !is_banned(now, limit));
            passes = passes && (admits.back() || limit.dry_run);

            bring_back(now, limit, admits.back());
        }

        std::vector<Answer> answers;

        for (size_t i = 0; i < limits.size(); i++) {
            const Limit &limit = limits[i];
            bool is_counted =
                admits[i] ? passes && limit.cost > 0
                          : limit.counts_refused && !is_banned(now, limit);

            if (is_counted) {
                add(limit.key,
                    {now, limit.cost, id, limit.keeps_id(), !admits[i]});
            }

            Answer answer;
            answer.admits = is_banned(now, limit) ? 3
                            : !admits[i]          ? 0
                            : is_counted          ? 2
                                                  : 1;
            answer.used = used(limit);
            answer.wait = admits[i] ? until_anything_leaves(now, limit)
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
            int64_t counted = limit.true_cost < limit.cost
                                  ? lower(then, id, limit)
                                  : raise(now, id, limit);

            if (counted != kNever) {
                result.at_most++;
                result.at_least += limit.leaves_at(counted) > now;
            }
        }

        return result;
    }

    /* What an operator does, and where the client stands then. */
    Standing intervene(int64_t now, const Limit &limit,
                       const Intervention &intervention)
    {
        Ruling &ruling = rulings_[limit.key];
        int64_t until = intervention.lasts > 0 ? now + intervention.lasts : 0;

        switch (intervention.act) {
        case Act::kLook:
            break;

        case Act::kForget:
            keys_[limit.key].clear();
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

        /* a store need not remove what has left when an operator looks: until
         * it does, that may be taken back, to no effect */
        Model after = *this;

        after.drop_what_has_left(now, limit);

        return after.standing(now, limit);
    }

    /* How many requests are kept, refused ones among them. */
    size_t size(int key) { return keys_[key].size(); }

    /* What the last request about a key found: how many had left, and how many
     * were there. */
    struct Passed {
        size_t dropped;
        size_t remained;
    };

    Passed passed(int key) { return passed_[key]; }

    /* How many a store cannot forget: all that were admitted, and the newest
     * refused ones that cost max together. */
    size_t matter(const Limit &limit)
    {
        const Entries &entries = keys_[limit.key];
        int64_t refused = 0;
        size_t count = 0;

        for (auto it = entries.rbegin(); it != entries.rend(); ++it) {
            count += !it->was_refused || refused < limit.max;
            refused += it->was_refused ? it->cost : 0;
        }

        return count;
    }

    /* How many a store may have had to go through for the last answer, if each
     * of them, and the request itself, has to be dropped and added up. */
    size_t touched() const { return touched_; }

  private:
    static constexpr uint64_t kNobody = 0;

    struct Entry {
        int64_t time;
        int64_t cost;
        uint64_t id; /* kNobody: whose it is is not known any more */
        bool keeps_id;
        bool was_refused;
        bool is_later = false; /* what was counted when it was settled */
    };

    /* Each holds until its moment. */
    struct Ruling {
        int64_t ban_until = 0;
        int64_t max = 0;
        int64_t max_until = 0;
    };

    static constexpr int64_t kNever = INT64_MAX;

    /* Oldest first. */
    using Entries = std::vector<Entry>;

    std::map<int, Entries> keys_;
    std::map<int, Passed> passed_;
    std::map<int, Ruling> rulings_;
    std::map<int, bool> are_buckets_;

    /* The time of the latest request whose count was moved, by key. */
    std::map<int, int64_t> moved_;

    size_t tells_apart_;
    size_t touched_ = 0;

    void add(int key, const Entry &entry)
    {
        Entries &entries = keys_[key];
        auto later = std::find_if(
            entries.rbegin(), entries.rend(),
            [&](const Entry &other) { return other.time <= entry.time; });

        entries.insert(later.base(), entry);
    }

    /* By another configuration. What was ruled stays. */
    void start_anew_if_changed(const Limit &limit)
    {
        auto known = are_buckets_.emplace(limit.key, limit.has_buckets()).first;

        if (known->second != limit.has_buckets()) {
            known->second = limit.has_buckets();
            keys_[limit.key].clear();
            moved_.erase(limit.key);
        }
    }

    /* Left is left: also if the clock is set back afterwards. */
    void drop_what_has_left(int64_t now, const Limit &limit)
    {
        Entries &entries = keys_[limit.key];
        auto has_left = [&](const Entry &entry) {
            return limit.leaves_at(entry.time) <= now;
        };

        entries.erase(std::remove_if(entries.begin(), entries.end(), has_left),
                      entries.end());

        auto moved = moved_.find(limit.key);

        if (moved != moved_.end() && limit.leaves_at(moved->second) <= now) {
            moved_.erase(moved);
        }
    }

    /* What is from the future counts from now on, once that is noticed. */
    void bring_back(int64_t now, const Limit &limit, bool admits)
    {
        Entries &entries = keys_[limit.key];

        bool is_plain = limit.algorithm == Algorithm::kLog;

        if (entries.empty()
            || (is_plain && admits && entries.front().time <= now)) {
            return;
        }

        bool are_one = is_plain && told_apart(entries) > tells_apart_
                       && entries.front().time > now;

        for (Entry &entry : entries) {
            if (limit.has_buckets()
                && entry.time / limit.width() > now / limit.width()) {
                int64_t &moved = moved_[limit.key];

                moved = std::max(moved, entry.time);
            }

            entry.time = std::min(entry.time, now);
            entry.id = are_one ? kNobody : entry.id;
        }
    }

    /* Those of which nobody knows any more whose they are, are one. */
    static size_t told_apart(const Entries &entries)
    {
        auto known = std::count_if(
            entries.begin(), entries.end(),
            [](const Entry &entry) { return entry.id != kNobody; });
        auto count = static_cast<size_t>(known);

        return count < entries.size() ? count + 1 : count;
    }

    int64_t used(const Limit &limit)
    {
        int64_t sum = 0;

        for (const Entry &entry : keys_[limit.key]) {
            sum += entry.cost;
        }

        return sum;
    }

    int64_t until_anything_leaves(int64_t now, const Limit &limit)
    {
        const Entries &entries = keys_[limit.key];

        return entries.empty() ? 0
                               : limit.leaves_at(entries.front().time) - now;
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
        return limit.cost == 0 || used(limit) + limit.cost <= max(now, limit);
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

        if (is_banned(now, limit)) {
            wait = std::max(wait, rulings_[limit.key].ban_until - now);
        }

        return wait == kNever ? 0 : wait;
    }

    /* With the other max while that holds, and then with the limit's own. */
    int64_t until_it_fits(int64_t now, const Limit &limit)
    {
        int64_t by_own = until_there_is_room(now, limit, limit.max);

        if (!is_overridden(now, limit)) {
            return by_own;
        }

        int64_t left = rulings_[limit.key].max_until - now;
        int64_t by_ruled = until_there_is_room(now, limit, max(now, limit));

        return by_ruled <= left ? by_ruled : std::max(left, by_own);
    }

    int64_t until_there_is_room(int64_t now, const Limit &limit, int64_t max)
    {
        int64_t remains = used(limit);

        if (limit.cost > max) {
            return kNever;
        }

        if (remains + limit.cost <= max) {
            return 0;
        }

        for (const Entry &entry : keys_[limit.key]) {
            remains -= entry.cost;

            if (remains + limit.cost <= max) {
                return limit.leaves_at(entry.time) - now;
            }
        }

        return 0;
    }

    Standing standing(int64_t now, const Limit &limit)
    {
        const Ruling &ruling = rulings_[limit.key];
        Standing standing{};

        standing.used = used(limit);
        standing.wait = until_anything_leaves(now, limit);

        if (is_banned(now, limit)) {
            standing.ban_left = ruling.ban_until - now;
        }

        if (is_overridden(now, limit)) {
            standing.max = ruling.max;
            standing.max_left = ruling.max_until - now;
        }

        const Entries &entries = keys_[limit.key];

        for (auto it = entries.rbegin(); it != entries.rend(); ++it) {
            show(now, limit, *it, &standing.entries);
        }

        return standing;
    }

    /* A bucket is shown once, with all that was counted in it. */
    static void show(int64_t now, const Limit &limit, const Entry &entry,
                     std::vector<Shown> *shown)
    {
        if (!limit.has_buckets()) {
            shown->push_back({now - entry.time, entry.cost, entry.was_refused,
                              entry.id, !entry.keeps_id});
            return;
        }

        int64_t began = entry.time / limit.width() * limit.width();

        if (!shown->empty() && shown->back().ago == now - began) {
            shown->back().cost += entry.cost;
        } else {
            shown->push_back({now - began, entry.cost, false, kNobody, true});
        }
    }

    /* What a request has cost more. Returns when that was counted; kNever: it
     * was not, or was before. */
    int64_t raise(int64_t now, uint64_t id, const Limit &limit)
    {
        if (limit.true_cost == limit.cost) {
            return kNever;
        }

        size_t before = size(limit.key);

        drop_what_has_left(now, limit);
        passed_[limit.key] = {before - size(limit.key), size(limit.key)};

        if (limit.algorithm != Algorithm::kLog) {
            bring_back(now, limit, true);
        }

        const Entries &entries = keys_[limit.key];
        int64_t more = limit.true_cost - limit.cost;
        int64_t amount = std::min(more, kMostUsed - used(limit));

        /* a log that is not packed looks for all of it */
        auto is_it = [&](const Entry &entry) {
            return entry.id == id && entry.is_later
                   && (limit.algorithm == Algorithm::kPacked
                       || entry.cost == more);
        };
        bool is_known = !limit.has_buckets()
                        && std::any_of(entries.begin(), entries.end(), is_it);

        if (is_known || amount <= 0) {
            return kNever;
        }

        add(limit.key, {now, amount, id, true, false, true});

        return now;
    }

    /* What it has cost less. Returns when that was counted; kNever: it was
     * not, or cost something else. */
    int64_t lower(int64_t then, uint64_t id, const Limit &limit)
    {
        return limit.has_buckets() ? lower_in_bucket(then, limit)
                                   : lower_in_log(id, limit);
    }

    int64_t lower_in_log(uint64_t id, const Limit &limit)
    {
        Entries &entries = keys_[limit.key];
        auto it = std::find_if(
            entries.begin(), entries.end(), [&](const Entry &entry) {
                return entry.id == id && !entry.was_refused && !entry.is_later;
            });

        if (it == entries.end() || it->cost != limit.cost) {
            return kNever;
        }

        int64_t time = it->time;

        it->cost = limit.true_cost;

        if (it->cost == 0) {
            entries.erase(it);
        }

        return time;
    }

    /* The same. Where nothing was moved, all counts in a bucket are of requests
     * that were counted in it: any of them will do. */
    int64_t lower_in_bucket(int64_t then, const Limit &limit)
    {
        Entries &entries = keys_[limit.key];
        auto moved = moved_.find(limit.key);

        if (moved != moved_.end()
            && then / limit.width() <= moved->second / limit.width())
        {
            return kNever;
        }

        int64_t left = limit.cost - limit.true_cost;
        bool found = false;

        for (Entry &entry : entries) {
            if (entry.time / limit.width() == then / limit.width()) {
                int64_t taken = std::min(left, entry.cost);

                entry.cost -= taken;
                left -= taken;
                found = true;
            }
        }

        auto is_void = [](const Entry &entry) {
            return entry.cost == 0;
        };

        entries.erase(std::remove_if(entries.begin(), entries.end(), is_void),
                      entries.end());

        return found ? then : kNever;
    }
};

}  // namespace sl_model
