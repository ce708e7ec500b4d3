/*
 * Random requests, and what the model says to them: for comparing a store with
 * the model. Knows nothing of the store either.
 */

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sl_mixes.h"
#include "sl_model.h"
#include "sl_random.h"

namespace sl_model {

constexpr int64_t kSecond = 1000000;

/* In what a store may differ from the model. */
struct Store {
    /* No two requests have the same time; and it has to be told of what was
     * counted more than once whose that is. */
    bool is_monotonic;

    /* Whose requests they are that operators are shown, of how many units. */
    bool shows_ids;
    int64_t shows_units;

    /* More than that are not counted one by one; 0: any number. */
    int64_t longest = 0;
};

struct Key {
    /* With the usual max, and a cost of 0. */
    Limit limit;

    bool has_tiers;

    /* When the round is over: how many units have not left, or had not when
     * somebody last looked, and how many there ever were. */
    int64_t size;
    Model::Counts counts;
};

struct Call {
    int64_t time;
    uint64_t id;
    std::vector<Limit> limits;

    /* If this settles: what was counted when. */
    bool settles;
    int64_t then;
    Settled settled;

    /* If an operator steps in: what is done about the client of the only limit,
     * and where it stands then. */
    bool intervenes;
    Intervention intervention;
    Standing standing;

    /* If neither: what the model says about each limit. */
    std::vector<Answer> answers;
};

struct Round {
    const Mix *mix = nullptr;
    std::vector<Key> keys;
    std::vector<Call> calls;

    /* Not all that has left a log may have been removed from it. */
    bool may_lag = false;

    /* When everything that was counted has left its window, and all that was
     * ruled has ended. */
    int64_t end = 0;
};

/* Makes a round: its requests, and what the model says to them. */
class Planner {
  public:
    Planner(const Mix &mix, const Store &store, int first_key,
            const Random &random)
        : mix_(mix), store_(store), random_(random), model_(store.shows_units),
          now_(1800000000 * kSecond)
    {
        static const int kLeaps[] = {4000, 1000, 200, 30};
        static const int64_t kDearest[] = {2, 2, 20, 200};

        now_ += random_.below(1000000 * kSecond);
        round_.mix = &mix;

        for (int i = 0; i < mix.keys; i++) {
            add_key(first_key + i);
        }

        leaps_ = kLeaps[random_.below(mix_.steps_back ? 3 : 4)];
        rate_ = random_.between(1, 2 * mix_.keys);
        dearest_ = kDearest[random_.below(4)];

        /* a crowd must not be left alone for long */
        if (mix_.hammers || mix_.is_long) {
            leaps_ = mix_.hammers || mix_.costs ? 30 : 10;
        }

        if (mix_.hammers) {
            rate_ = 3 + 200 / round_.keys[0].limit.max;
        }

        is_ruinous_ = mix_.settles && is_huge() && random_.chance(40);
    }

    Round plan()
    {
        /* a long log must get full in between */
        int64_t how_often_ruled = mix_.is_long ? 5 : 600;

        for (int i = 0; i < mix_.requests; i++) {
            if (random_.chance(how_many_settle()) && !counted_.empty()) {
                settle();
            } else if (mix_.rulings && random_.below(10000) < how_often_ruled) {
                intervene();
            } else {
                ask();
            }
        }

        for (const Call &call : round_.calls) {
            round_.end = std::max(round_.end, call.time);
        }

        for (int64_t end : ruling_ends_) {
            round_.end = std::max(round_.end, end);
        }

        for (Key &key : round_.keys) {
            round_.end += 4 * (key.limit.window + key.limit.buckets);
            key.size = model_.size(key.limit.key);
            key.counts = model_.counts(key.limit.key);
        }

        round_.may_lag = model_.may_lag();

        return std::move(round_);
    }

  private:
    /* What an earlier request has counted, and may be settled. */
    struct Counted {
        int64_t time;
        uint64_t id;
        std::vector<Limit> limits;

        /* It was, with their true costs. */
        bool is_settled = false;
    };

    const Mix &mix_;
    const Store &store_;
    Random random_;
    Round round_{};
    Model model_;
    std::vector<Counted> counted_;
    int64_t now_;

    /* By how much the clock has been set back. */
    int64_t behind_ = 0;

    /* How often time makes a leap, in 10000 calls, and how many requests there
     * are otherwise for each one that is allowed. */
    int leaps_;
    int64_t rate_;

    /* What a small request of a long log costs at most. */
    int64_t dearest_;

    /* That the last answer named. */
    int64_t wait_ = 0;

    /* Many requests are settled one after the other, and have cost so much that
     * no sum can take it. */
    bool is_ruinous_ = false;
    bool is_ruin_ = false;

    /* When what operators have ruled ends. */
    std::vector<int64_t> ruling_ends_;

    void add_key(int number)
    {
        Key key{};
        Limit &limit = key.limit;
        int64_t most = mix_.max;

        /* requests of the same limits, but of other clients */
        if (mix_.alike && round_.keys.size() >= limits_of_request()) {
            key = round_.keys[round_.keys.size() - limits_of_request()];
            limit.key = number;
            round_.keys.push_back(key);
            return;
        }

        if (mix_.is_long && store_.longest > 0) {
            most = std::min(most, store_.longest);
        }

        limit.key = number;

        /* of similar size in one round, from microseconds to a month */
        if (round_.keys.empty()) {
            static const int64_t kSizes[] = {30, 1000, kSecond, 60 * kSecond,
                                             31 * 86400 * kSecond};

            limit.window = mix_.hammers || mix_.is_long
                               ? random_.between(kSecond, 60 * kSecond)
                               : random_.between(1, kSizes[random_.below(5)]);
        } else {
            int64_t first = round_.keys[0].limit.window;

            limit.window = random_.between(1 + first / 4, 1 + first * 2);
        }

        choose_algorithm(&limit);

        limit.max = mix_.is_long ? random_.between(most / 2, most)
                    : is_huge()  ? random_.between(1, 9) * (most / 9)
                                 : random_.of_any_size(most);
        limit.counts_refused =
            mix_.counts_refused
            && (mix_.hammers || mix_.is_long || random_.chance(30));
        limit.dry_run = mix_.dry_runs && random_.chance(30);
        key.has_tiers = mix_.tiers && !drops(limit);

        round_.keys.push_back(key);
    }

    void choose_algorithm(Limit *limit)
    {
        std::vector<Algorithm> algorithms;

        if (mix_.logs) {
            algorithms.push_back(Algorithm::kLog);
        }

        if (mix_.packed) {
            algorithms.push_back(Algorithm::kPacked);
        }

        if (mix_.buckets) {
            algorithms.push_back(Algorithm::kBuckets);
        }

        limit->algorithm = any_of(algorithms);
        limit->buckets = limit->has_buckets() ? random_.of_any_size(100) : 0;
    }

    /* Units make room for newer ones that are refused. */
    static bool drops(const Limit &limit)
    {
        return limit.counts_refused && !limit.has_buckets();
    }

    /* Of 100 calls. */
    int how_many_settle()
    {
        constexpr size_t kMany = 30;

        if (!mix_.take_backs) {
            return 0;
        }

        if (is_ruinous_) {
            is_ruin_ = is_ruin_ ? !counted_.empty() : counted_.size() > kMany;
            return is_ruin_ ? 80 : 0;
        }

        /* of the few that are admitted in a crowd some must stay for a while */
        return mix_.hammers ? 1 : 15;
    }

    size_t limits_of_request() const
    {
        return static_cast<size_t>(mix_.limits);
    }

    /* Costs of any size up to the largest that there may be. */
    bool is_huge() const { return mix_.max > 1000000; }

    void pass_time()
    {
        const Limit &limit = any_of(round_.keys).limit;
        int64_t kind = random_.below(100);

        if (random_.below(10000) < leaps_) {
            leap(limit);
        } else if (kind < (mix_.alike ? 75 : 35)) {
            return;
        } else if (kind < 50) {
            now_ += random_.between(1, 3);
        } else {
            int64_t requests = is_huge() ? 20 : limit.max;

            now_ += random_.below(2 * limit.window / (rate_ * requests) + 2);
        }
    }

    /* Far away, or exactly to where something changes, or right next to it. */
    void leap(const Limit &limit)
    {
        int64_t width = limit.has_buckets() ? limit.width() : limit.window;
        int64_t kind = random_.below(100);
        int64_t to = now_;

        if (mix_.steps_back && kind >= 75) {
            step(limit);
            return;
        }

        if (!ruling_ends_.empty() && random_.chance(30)) {
            to = any_of(ruling_ends_) + random_.between(-1, 1);
        } else if (kind < 40) {
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
        /* what has left and is still there would be in the window again, and
         * not all units from the future would be brought back at a time */
        if (model_.may_lag()
            || std::any_of(
                round_.keys.begin(), round_.keys.end(), [&](const Key &key) {
                    return key.limit.is_log()
                           && model_.size(key.limit.key) > kMostAtATime;
                }))
        {
            return;
        }

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

        limit.cost = std::min(cost_of(limit), most_of_cost(limit));

        return limit;
    }

    static int64_t most_of_cost(const Limit &limit)
    {
        return limit.is_log()        ? 1000
               : limit.has_buckets() ? 1000000000000000
                                     : 10000;
    }

    int64_t cost_of(const Limit &limit)
    {
        if (!mix_.costs) {
            return 1;
        }

        int64_t kind = random_.below(100);

        if (mix_.is_long) {
            /* many small ones, and then large ones that have to wait */
            bool is_half_full = model_.size(limit.key) > limit.max / 2;

            return is_half_full && kind < 5
                       ? random_.between(limit.max / 2 + 1, limit.max)
                   : kind < 15
                       ? std::min(limit.max, random_.between(2, dearest_))
                       : 1;
        }

        if (kind < 8) {
            return 0;
        }

        if (is_huge() && kind < 90) {
            int64_t bound = 10;

            for (int64_t n = random_.below(15); n > 0; n--) {
                bound *= 10;
            }

            return random_.between(1, std::min(bound, limit.max));
        }

        if (kind < 50) {
            return 1;
        }

        return kind < 90   ? random_.between(1, std::min<int64_t>(limit.max, 5))
               : kind < 95 ? random_.between(1, limit.max)
                           : limit.max;
    }

    /* Every id is one request's, as in real life. */
    uint64_t new_id() { return (round_.calls.size() + 1) * 0x9e3779b97f4a7c15; }

    /* Those of the next request. */
    std::vector<Limit> some_limits()
    {
        std::vector<Limit> limits;
        auto count = static_cast<size_t>(random_.between(1, mix_.limits));

        if (mix_.alike) {
            for (size_t i = 0, first = first_of_any_client();
                 i < limits_of_request(); i++) {
                limits.push_back(limit_of(round_.keys[first + i]));
            }

            return limits;
        }

        std::vector<Key> keys = round_.keys;

        while (keys.size() > count) {
            keys.erase(keys.begin()
                       + random_.below(static_cast<int64_t>(keys.size())));
        }

        for (const Key &key : keys) {
            limits.push_back(limit_of(key));
        }

        return limits;
    }

    size_t first_of_any_client()
    {
        auto clients =
            static_cast<int64_t>(round_.keys.size() / limits_of_request());

        return static_cast<size_t>(random_.below(clients))
               * limits_of_request();
    }

    /* To the time of the next call. */
    void go_on()
    {
        int64_t before = now_;

        pass_time();

        if (store_.is_monotonic && now_ <= before) {
            now_ = before + 1;
        }
    }

    /* An operator does something about a client. */
    void intervene()
    {
        Key &key = any_of(round_.keys);
        Call call{};

        go_on();

        call.time = now_;
        call.id = new_id();
        call.limits.push_back(key.limit);
        call.intervenes = true;
        call.intervention = any_intervention(key);
        call.standing = model_.intervene(now_, key.limit, call.intervention);

        for (Shown &shown : call.standing.shown) {
            shown.id = store_.shows_ids ? shown.id : 0;
        }

        if (call.intervention.lasts > 0) {
            ruling_ends_.push_back(now_ + call.intervention.lasts);
        }

        round_.calls.push_back(std::move(call));
    }

    Intervention any_intervention(const Key &key)
    {
        int64_t kind = random_.below(100);

        if (kind < 20) {
            return {Act::kLook, 0, 0};
        }

        if (kind < 35) {
            return {Act::kForget, 0, 0};
        }

        int64_t lasts = random_.chance(20) ? 0 : any_length(key.limit);

        return kind < 60
                   ? Intervention{Act::kBan, lasts, 0}
                   : Intervention{
                       Act::kOverride, lasts,
                       lasts == 0 ? 0 : random_.between(1, 2 * key.limit.max)};
    }

    /* Around the window, or up to where something leaves, or shorter, or much
     * longer. */
    int64_t any_length(const Limit &limit)
    {
        int64_t kind = random_.below(100);
        int64_t length = kind < 20   ? limit.window + random_.between(-1, 1)
                         : kind < 40 ? wait_ + random_.between(-1, 1)
                         : kind < 80 ? limit.window / random_.between(2, 20)
                         : kind < 95 ? random_.below(2 * limit.window)
                                     : random_.below(20 * limit.window);

        /* nothing is ruled for more than a year */
        return std::clamp<int64_t>(length, 1, 365 * 86400 * kSecond);
    }

    void ask()
    {
        Call call{};

        /* now and then just as the last one, at the same time */
        if (!store_.is_monotonic && !round_.calls.empty()
            && !round_.calls.back().answers.empty() && random_.chance(25))
        {
            call.limits = round_.calls.back().limits;

            for (size_t i = 0, first = first_of_any_client();
                 i < call.limits.size() && mix_.alike; i++)
            {
                call.limits[i].key = round_.keys[first + i].limit.key;
            }
        } else {
            call.limits = some_limits();
            go_on();
        }

        call.time = now_;
        call.id = new_id();
        call.answers = model_.ask(now_, call.id, call.limits);
        wait_ = call.answers[0].wait;

        Counted counted{now_, call.id, {}};

        for (size_t i = 0; i < call.limits.size(); i++) {
            bool has_looked = mix_.settles && call.limits[i].cost == 0;

            if (call.answers[i].admits == 2 || has_looked) {
                counted.limits.push_back(call.limits[i]);
            }
        }

        if (mix_.take_backs && !counted.limits.empty()) {
            counted_.push_back(std::move(counted));
        }

        round_.calls.push_back(std::move(call));
    }

    /* Soon or late, all of it or a part, and now and then once more. */
    void settle()
    {
        size_t index = counted_.size() - 1;

        /* what has cost more gets a time of its own */
        go_on();

        if (random_.chance(40)) {
            index = static_cast<size_t>(
                random_.below(static_cast<int64_t>(counted_.size())));
        }

        Counted &counted = counted_[index];

        if (!counted.is_settled) {
            choose_true_costs(&counted);
        } else if (store_.is_monotonic) {
            keep_what_may_be_repeated(&counted.limits);
        }

        Call call{};

        call.settles = true;
        call.time = now_;
        call.then = counted.time;
        call.id = counted.id;
        call.limits = counted.limits;
        counted.is_settled = true;

        if (call.limits.empty() || !random_.chance(25)) {
            counted_.erase(counted_.begin()
                           + static_cast<std::ptrdiff_t>(index));
        }

        if (!call.limits.empty()) {
            call.settled = model_.settle(now_, call.then, call.id, call.limits);
            round_.calls.push_back(std::move(call));
        }
    }

    /* What a request turns out to have cost. */
    void choose_true_costs(Counted *counted)
    {
        std::vector<Limit> &limits = counted->limits;
        bool is_nothing = !mix_.settles || random_.chance(20);

        if (limits.size() > 1 && random_.chance(30)) {
            limits.pop_back();
        }

        for (Limit &limit : limits) {
            limit.true_cost =
                is_nothing || drops(limit) ? 0 : true_cost_of(limit);
        }
    }

    int64_t true_cost_of(const Limit &limit)
    {
        int64_t kind = random_.below(100);
        int64_t cost = limit.cost;
        int64_t most = most_of_cost(limit);

        if (is_ruinous_ && kind >= 15) {
            return random_.between(std::clamp(cost, most / 2, most), most);
        }

        if (kind < 40) {
            return random_.between(0, cost);
        }

        if (kind < 50) {
            return cost;
        }

        int64_t high = kind < 70   ? cost + 5
                       : kind < 90 ? cost + 1 + limit.max / 4
                       : kind < 98 ? 2 * limit.max
                                   : 10 * limit.max;

        return random_.between(std::min(cost, most), std::min(high, most));
    }

    /* Where nothing else has the same time, only a log knows what was settled
     * before. */
    static void keep_what_may_be_repeated(std::vector<Limit> *limits)
    {
        limits->erase(std::remove_if(limits->begin(), limits->end(),
                                     [](const Limit &limit) {
                                         return !limit.is_log()
                                                || limit.true_cost > limit.cost;
                                     }),
                      limits->end());
    }
};

}  // namespace sl_model
