/*
 * Random requests, and what the model says to them: for comparing a store with
 * the model. Knows nothing of the store either.
 */

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "sl_model.h"

namespace sl_model {

constexpr int64_t kSecond = 1000000;

/* The same numbers everywhere, unlike the standard's distributions. */
class Random {
  public:
    explicit Random(uint64_t seed) : engine_(seed) {}

    /* From 0 to n - 1. */
    int64_t below(int64_t n)
    {
        return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n));
    }

    int64_t between(int64_t low, int64_t high)
    {
        return low + below(high - low + 1);
    }

    bool chance(int percent) { return below(100) < percent; }

    /* From 1 to `high`, mostly small. */
    int64_t of_any_size(int64_t high)
    {
        int64_t bound = 10;

        while (bound < high && chance(50)) {
            bound *= 10;
        }

        return between(1, std::min(bound, high));
    }

  private:
    std::mt19937_64 engine_;
};

enum class Checks {
    /* Every number of every answer. */
    kAll,

    /* The same, but in a log of more than 1000 entries of various costs a wait
     * may be too short: not all of them have to be added up for it. */
    kLongWaits,

    /* Only what follows from the answers themselves. */
    kInvariants,
};

/* What the requests of a test are made of. */
struct Mix {
    const char *title;
    int share; /* of 1000 requests */
    int keys = 3;
    int limits = 1; /* most of a request */
    int64_t max = 60;
    int requests = 500; /* of a round, which has keys of its own */
    bool logs = false;
    bool buckets = false;
    bool costs = false;
    bool tiers = false; /* max varies from request to request */
    bool counts_refused = false;
    bool dry_runs = false;
    bool take_backs = false;
    bool steps_back = false;
    bool hammers = false; /* asks much more often than is allowed */
    Checks checks = Checks::kAll;
};

/* In what a store may differ from the model. */
struct Store {
    /* Its clock never steps back or stands still: so no two requests have the
     * same time. */
    bool is_monotonic;

    /* How many refused requests of one key it remembers, if they count, for
     * sure: so many times max, and so many more. */
    int64_t remembers_of_max;
    int64_t remembers_more;

    /* How many requests it goes through one by one for an answer; 0: as many as
     * it takes. Past that it may name a wait that is too short where they have
     * costs, and not tell apart those from the future. */
    int64_t goes_through = 0;
};

struct Key {
    /* With the usual max, and a cost of 0. */
    Limit limit;

    bool has_tiers;

    /*
     * Of a log that counts refused requests a store forgets the oldest ones
     * when they get too many. With the same max all the time no decision and
     * no wait may change by that, but less seems to be used.
     */
    bool may_forget;
};

struct Call {
    int64_t time;
    uint64_t id;
    std::vector<Limit> limits;

    /* If this takes back: what was counted when. */
    bool takes_back;
    int64_t then;
    TakenBack taken_back;

    /* If not: for each limit what the model says, how many entries that was
     * made of, and whether some may be forgotten. */
    std::vector<Answer> answers;
    std::vector<size_t> sizes;
    std::vector<bool> may_forget;

    /* More than the store goes through. */
    bool may_be_short;
};

struct Round {
    const Mix *mix = nullptr;
    std::vector<Key> keys;
    std::vector<Call> calls;

    /* When everything that was counted has left its window. */
    int64_t end = 0;
};

/* Makes a round: its requests, and what the model says to them. */
class Planner {
  public:
    Planner(const Mix &mix, const Store &store, int first_key, uint64_t seed)
        : mix_(mix), store_(store), random_(seed),
          model_(store.goes_through > 0 ? goes_through() : SIZE_MAX),
          now_(1800000000 * kSecond), behind_(0), wait_(0)
    {
        now_ += random_.below(1000000 * kSecond);
        round_.mix = &mix;

        for (int i = 0; i < mix.keys; i++) {
            add_key(first_key + i);
        }

        static const int kLeaps[] = {4000, 1000, 200, 30};

        leaps_ = kLeaps[random_.below(mix_.steps_back ? 3 : 4)];
        rate_ = random_.between(1, 2 * mix_.keys);

        /* a crowd must not be left alone for long */
        if (is_crowded()) {
            leaps_ = mix_.hammers ? 30 : 10;
        }

        if (mix_.hammers) {
            rate_ = 3 + 200 / round_.keys[0].limit.max;
        }
    }

    Round plan()
    {
        /* of the few that are admitted in a crowd some must stay for a while */
        int take_backs = !mix_.take_backs ? 0 : mix_.hammers ? 1 : 15;

        for (int i = 0; i < mix_.requests; i++) {
            if (random_.chance(take_backs) && !counted_.empty()) {
                take_back();
            } else {
                ask();
            }
        }

        for (const Call &call : round_.calls) {
            round_.end = std::max(round_.end, call.time);
        }

        for (const Key &key : round_.keys) {
            round_.end += 4 * (key.limit.window + key.limit.buckets);
        }

        return std::move(round_);
    }

  private:
    /* What an earlier request has counted, and may be taken back. */
    struct Counted {
        int64_t time;
        uint64_t id;
        std::vector<Limit> limits;
    };

    const Mix &mix_;
    const Store &store_;
    Random random_;
    Round round_{};
    Model model_;
    std::vector<Counted> counted_;
    int64_t now_;

    /* By how much the clock has been set back. */
    int64_t behind_;

    /* How often time makes a leap, in 10000 calls, and how many requests there
     * are otherwise for each one that is allowed. */
    int leaps_;
    int64_t rate_;

    /* That the last answer named. */
    int64_t wait_;

    void add_key(int number)
    {
        Key key{};
        Limit &limit = key.limit;

        limit.key = number;

        /* of similar size in one round, from microseconds to a month */
        if (round_.keys.empty()) {
            static const int64_t kSizes[] = {30, 1000, kSecond, 60 * kSecond,
                                             31 * 86400 * kSecond};

            limit.window = is_crowded()
                               ? random_.between(kSecond, 60 * kSecond)
                               : random_.between(1, kSizes[random_.below(5)]);
        } else {
            int64_t first = round_.keys[0].limit.window;

            limit.window = random_.between(1 + first / 4, 1 + first * 2);
        }

        if (mix_.buckets && (!mix_.logs || random_.chance(50))) {
            limit.buckets = random_.of_any_size(100);
        }

        if (mix_.checks == Checks::kLongWaits) {
            limit.max = random_.between(mix_.max / 2, mix_.max);
        } else {
            limit.max = random_.of_any_size(mix_.max);
        }

        limit.counts_refused =
            mix_.counts_refused && (mix_.hammers || random_.chance(30));
        limit.dry_run = mix_.dry_runs && random_.chance(30);

        key.has_tiers = mix_.tiers
                        && (!limit.counts_refused || limit.buckets > 0
                            || mix_.checks == Checks::kInvariants);

        round_.keys.push_back(key);
    }

    /* Only many requests show what this is about. */
    bool is_crowded() const
    {
        return mix_.hammers || mix_.checks == Checks::kLongWaits;
    }

    void pass_time()
    {
        const Limit &limit = any_of(round_.keys).limit;
        int64_t kind = random_.below(100);

        if (random_.below(10000) < leaps_) {
            leap(limit);
        } else if (kind < 35) {
            return;
        } else if (kind < 50) {
            now_ += random_.between(1, 3);
        } else {
            now_ += random_.below(2 * limit.window / (rate_ * limit.max) + 2);
        }
    }

    /* Far away, or exactly to where something changes, or right next to it. */
    void leap(const Limit &limit)
    {
        int64_t width = limit.buckets > 0 ? limit.width() : limit.window;
        int64_t kind = random_.below(100);
        int64_t to = now_;

        if (mix_.steps_back && kind >= 75) {
            step(limit);
            return;
        }

        if (kind < 40) {
            to = now_ + wait_ + random_.between(-1, 1);
        } else if (kind < 60 && !counted_.empty()) {
            const Counted &counted = any_of(counted_);

            to = counted.time + counted.limits[0].window
                 + random_.between(-1, 1);
        } else if (kind < 80) {
            to = (now_ / width + 1) * width + random_.between(-1, 1);
        } else {
            to = now_ + random_.below(3 * limit.window);
        }

        now_ = std::max(now_, to);
    }

    /* By next to nothing, within a window or far, and now and then right again.
     */
    void step(const Limit &limit)
    {
        if (random_.chance(20)) {
            now_ += behind_;
            behind_ = 0;
            return;
        }

        static const int64_t kSizes[] = {3, 10, 20, 100};
        int64_t most = limit.window * kSizes[random_.below(4)] / 10;
        int64_t back = random_.below(random_.chance(20) ? 3 : most + 1);

        /* it was set in this century */
        if (now_ - back > 1000000000 * kSecond) {
            now_ -= back;
            behind_ += back;
        }
    }

    template <typename T>
    T &any_of(std::vector<T> &list)
    {
        return list[static_cast<size_t>(
            random_.below(static_cast<int64_t>(list.size())))];
    }

    Limit limit_of(const Key &key)
    {
        Limit limit = key.limit;

        if (key.has_tiers && random_.chance(40)) {
            limit.max = random_.between(1, 2 * limit.max);
        }

        limit.cost = cost_of(limit);

        return limit;
    }

    int64_t cost_of(const Limit &limit)
    {
        if (!mix_.costs) {
            return 1;
        }

        if (mix_.checks == Checks::kLongWaits) {
            /* many small ones, and then large ones that have to wait */
            bool is_half_full =
                model_.size(limit.key) > static_cast<size_t>(limit.max / 2);

            return is_half_full && random_.chance(5)
                       ? random_.between(limit.max / 2, limit.max)
                       : random_.between(1, 10) / 10 + 1;
        }

        int64_t kind = random_.below(100);

        if (kind < 8) {
            return 0;
        }

        if (kind < 50) {
            return 1;
        }

        return kind < 90   ? random_.between(1, std::min<int64_t>(limit.max, 5))
               : kind < 95 ? random_.between(1, limit.max)
                           : limit.max;
    }

    size_t goes_through() const
    {
        return static_cast<size_t>(store_.goes_through);
    }

    size_t remembered(const Limit &limit) const
    {
        return static_cast<size_t>(store_.remembers_of_max * limit.max
                                   + store_.remembers_more);
    }

    /* Every id is one request's, as in real life. */
    uint64_t new_id() { return round_.calls.size() + 1; }

    void ask()
    {
        std::vector<Key *> keys;

        for (Key &key : round_.keys) {
            keys.push_back(&key);
        }

        auto limits = static_cast<size_t>(random_.between(1, mix_.limits));

        while (keys.size() > limits) {
            keys.erase(keys.begin()
                       + random_.below(static_cast<int64_t>(keys.size())));
        }

        int64_t before = now_;

        pass_time();

        if (store_.is_monotonic && now_ <= before) {
            now_ = before + 1;
        }

        Call call{};

        call.time = now_;
        call.id = new_id();

        for (Key *key : keys) {
            call.limits.push_back(limit_of(*key));
        }

        call.answers = model_.ask(now_, call.id, call.limits);
        call.may_be_short =
            store_.goes_through > 0 && model_.touched() > goes_through();
        wait_ = call.answers[0].wait;

        Counted counted{now_, call.id, {}};

        for (size_t i = 0; i < keys.size(); i++) {
            Key &key = *keys[i];
            const Limit &limit = call.limits[i];
            size_t size = model_.size(limit.key);

            if (size == 0) {
                key.may_forget = false;
            } else if (limit.counts_refused && limit.buckets == 0
                       && size + 1 > remembered(limit))
            {
                key.may_forget = true;
            }

            call.sizes.push_back(size);
            call.may_forget.push_back(key.may_forget);

            if (call.answers[i].admits == 2) {
                counted.limits.push_back(limit);
            }
        }

        if (!counted.limits.empty()) {
            counted_.push_back(std::move(counted));
        }

        round_.calls.push_back(std::move(call));
    }

    /* Soon or late, all of it or a part, and now and then once more. */
    void take_back()
    {
        size_t index = counted_.size() - 1;

        if (random_.chance(40)) {
            index = static_cast<size_t>(
                random_.below(static_cast<int64_t>(counted_.size())));
        }

        Counted counted = counted_[index];

        if (!random_.chance(10)) {
            counted_.erase(counted_.begin()
                           + static_cast<std::ptrdiff_t>(index));
        }

        if (counted.limits.size() > 1 && random_.chance(30)) {
            counted.limits.pop_back();
        }

        /* what is forgotten could have mattered, if this was newer */
        if (mix_.steps_back && is_any_forgotten(counted.limits)) {
            return;
        }

        pass_time();

        Call call{};

        call.takes_back = true;
        call.time = now_;
        call.then = counted.time;
        call.id = counted.id;
        call.limits = std::move(counted.limits);
        call.taken_back =
            model_.take_back(now_, call.then, call.id, call.limits);

        round_.calls.push_back(std::move(call));
    }

    bool is_any_forgotten(const std::vector<Limit> &limits)
    {
        for (const Limit &limit : limits) {
            for (const Key &key : round_.keys) {
                if (key.limit.key == limit.key && key.may_forget) {
                    return true;
                }
            }
        }

        return false;
    }
};

/* All there is to test. */
inline std::vector<Mix> mixes()
{
    std::vector<Mix> list;
    Mix mix;

    mix = Mix{"a log is exact", 328};
    mix.logs = true;
    list.push_back(mix);

    mix = Mix{"a log of costs is exact", 100};
    mix.logs = mix.costs = true;
    list.push_back(mix);

    mix = Mix{"buckets are exact in their way", 100};
    mix.buckets = mix.costs = true;
    list.push_back(mix);

    mix = Mix{"max may vary and requests be taken back", 190};
    mix.logs = mix.buckets = mix.costs = mix.tiers = mix.take_backs = true;
    mix.max = 200;
    list.push_back(mix);

    mix = Mix{"several limits count all or nothing", 60};
    mix.logs = mix.buckets = mix.costs = mix.tiers = mix.dry_runs = true;
    mix.keys = mix.limits = 4;
    list.push_back(mix);

    mix = Mix{"everything goes together", 60};
    mix.logs = mix.buckets = mix.costs = mix.tiers = mix.take_backs = true;
    mix.dry_runs = mix.counts_refused = true;
    mix.keys = mix.limits = 4;
    list.push_back(mix);

    mix = Mix{"also when the clock steps back", 50};
    mix.logs = mix.buckets = mix.costs = mix.tiers = mix.take_backs = true;
    mix.dry_runs = mix.counts_refused = mix.steps_back = true;
    mix.keys = mix.limits = 4;
    list.push_back(mix);

    mix = Mix{"which admits nothing early and locks nobody out", 50};
    mix.logs = mix.buckets = mix.costs = mix.tiers = mix.steps_back = true;
    mix.dry_runs = true;
    mix.keys = mix.limits = 2;
    list.push_back(mix);

    mix = Mix{"forgotten refused requests make no difference", 40};
    mix.logs = mix.counts_refused = mix.hammers = mix.take_backs = true;
    mix.keys = 1;
    mix.max = 100;
    mix.requests = 1500;
    list.push_back(mix);

    mix.title = "nor do those with costs, wherever the clock goes";
    mix.share = 4;
    mix.costs = mix.steps_back = true;
    list.push_back(mix);

    mix = Mix{"with max varying they at least let nobody pass too early", 2};
    mix.logs = mix.counts_refused = mix.hammers = true;
    mix.costs = mix.tiers = true;
    mix.keys = 1;
    mix.max = 100;
    mix.requests = 1500;
    mix.checks = Checks::kInvariants;
    list.push_back(mix);

    mix = Mix{"a long log of costs never names a wait too long", 8};
    mix.logs = mix.costs = true;
    mix.keys = 1;
    mix.max = 8000;
    mix.requests = 12000;
    mix.checks = Checks::kLongWaits;
    list.push_back(mix);

    mix.title = "also when the clock steps back, and requests are taken back";
    mix.steps_back = mix.take_backs = true;
    mix.max = 2000;
    mix.requests = 6000;
    list.push_back(mix);

    return list;
}

}  // namespace sl_model
