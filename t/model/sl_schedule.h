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
    /* Its clock never steps back or stands still: so no two requests have the
     * same time. */
    bool is_monotonic;

    /* How many refused requests of one key it remembers, if they count, for
     * sure: so many times max, and so many more. Where they have costs it is
     * only the latter, and none if they cost more than that. */
    int64_t remembers_of_max;
    int64_t remembers_more;
    int64_t remembers_costs = 0;

    /*
     * How many requests it goes through one by one for an answer; 0: as many as
     * it takes. Past that it may name a wait that is too short where they have
     * costs, and not tell apart those from the future. Every limit has its
     * share, and of that a half for what has left the window: if there is more
     * with costs, it may take some of them to be used until it has removed
     * them, but decides as if it did not. There are fewer for every further
     * limit.
     */
    int64_t goes_through = 0;
    int64_t fewer_for_limit = 0;

    /* Whose requests they are that operators are shown. */
    bool shows_ids = false;
};

struct Key {
    /* With the usual max, and a cost of 0. */
    Limit limit;

    bool has_tiers;

    /* Of 100 requests so many may be settled in a packed log. */
    int with_ids;

    /* Operators may give it another max: the same as with tiers. */
    bool may_be_overridden;

    /*
     * Of a log that counts refused requests a store forgets the oldest ones
     * when they get too many. With the same max all the time no decision and
     * no wait may change by that, but less seems to be used.
     */
    bool may_forget;

    /* How many that have left a store may not have removed yet, at most. */
    size_t backlog;

    /* How many it cannot forget when the round is over. */
    size_t matter;
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

    /* If neither: for each limit what the model says, how many entries that was
     * made of, and whether some may be forgotten (this for those who intervene,
     * too). */
    std::vector<Answer> answers;
    std::vector<size_t> sizes;
    std::vector<bool> may_forget;
    std::vector<bool> may_seem_used;

    /* More than the store goes through. */
    bool may_be_short;
};

struct Round {
    const Mix *mix = nullptr;
    std::vector<Key> keys;
    std::vector<Call> calls;

    /* When everything that was counted has left its window, and all that was
     * ruled has ended. */
    int64_t end = 0;
};

/* Makes a round: its requests, and what the model says to them. */
class Planner {
  public:
    Planner(const Mix &mix, const Store &store, int first_key,
            const Random &random)
        : mix_(mix), store_(store), random_(random),
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
            leaps_ = mix_.hammers || mix_.costs ? 30 : 10;
        }

        static const int64_t kDearest[] = {2, 2, 20, 200};

        dearest_ = kDearest[random_.below(4)];

        if (mix_.hammers) {
            rate_ = 3 + 200 / round_.keys[0].limit.max;
        }

        is_ruinous_ = mix_.settles && is_huge() && random_.chance(40);
    }

    Round plan()
    {
        for (int i = 0; i < mix_.requests; i++) {
            if (random_.chance(how_many_settle()) && !counted_.empty()) {
                settle();
            } else if (mix_.rulings && random_.chance(6)) {
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
            key.matter = model_.matter(key.limit);
        }

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
    int64_t behind_;

    /* How often time makes a leap, in 10000 calls, and how many requests there
     * are otherwise for each one that is allowed. */
    int leaps_;
    int64_t rate_;

    /* What a small request of a long log costs at most. */
    int64_t dearest_;

    /* That the last answer named. */
    int64_t wait_;

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

        /* requests of the same limits, but of other clients */
        if (mix_.alike && round_.keys.size() >= limits_of_request()) {
            key = round_.keys[round_.keys.size() - limits_of_request()];
            limit.key = number;
            round_.keys.push_back(key);
            return;
        }

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

        choose_algorithm(&limit);

        static const int kWithIds[] = {0, 50, 100, 100};

        key.with_ids = kWithIds[random_.below(4)];

        if (mix_.checks == Checks::kLongWaits) {
            limit.max = random_.between(mix_.max / 2, mix_.max);
        } else if (is_huge()) {
            limit.max = random_.between(1, 9) * (mix_.max / 9);
        } else {
            limit.max = random_.of_any_size(mix_.max);
        }

        limit.counts_refused =
            mix_.counts_refused && (mix_.hammers || random_.chance(30));

        /* no bound to what is counted there, and no more than 2^53 is exact */
        if (is_huge() && (limit.has_buckets() || mix_.settles)) {
            limit.counts_refused = false;
        }

        limit.dry_run = mix_.dry_runs && random_.chance(30);

        bool never_forgets = limit.has_buckets() && !mix_.changes;

        key.may_be_overridden = !limit.counts_refused || never_forgets
                                || mix_.checks == Checks::kInvariants;
        key.has_tiers = mix_.tiers && key.may_be_overridden;

        round_.keys.push_back(key);
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

    /* One of those that the mix has. */
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

    /* The configuration is another from now on. */
    void change_algorithm(Key *key)
    {
        Limit before = key->limit;

        choose_algorithm(&key->limit);

        /* the number of buckets does not change, nobody could tell what a part
         * of the window has in it then */
        if (key->limit.algorithm == before.algorithm) {
            key->limit.buckets = before.buckets;
            return;
        }

        if (key->limit.has_buckets() || before.has_buckets()) {
            key->may_forget = false;
            key->backlog = 0;
            keep_from_settling(key->limit);
        }
    }

    /* Only many requests show what this is about. */
    bool is_crowded() const
    {
        return mix_.hammers || mix_.checks == Checks::kLongWaits;
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
            now_ = std::max(now_, to);
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
        /* what has left and is still there would be in the window again */
        if (has_backlog(round_.keys)) {
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

        limit.cost = cost_of(limit);
        limit.may_be_settled = limit.algorithm != Algorithm::kPacked
                               || random_.chance(key.with_ids);

        return limit;
    }

    int64_t cost_of(const Limit &limit)
    {
        if (!mix_.costs) {
            return 1;
        }

        if (mix_.checks == Checks::kLongWaits) {
            /* what has left and may still be there could take their place */
            if (key_of(limit).backlog > 0 && random_.chance(50)) {
                return random_.between(1, limit.max);
            }

            /* many small ones, and then large ones that have to wait */
            bool is_half_full =
                model_.size(limit.key) > static_cast<size_t>(limit.max / 2);

            return is_half_full && random_.chance(5)
                       ? random_.between(limit.max / 2 + 1, limit.max)
                   : random_.chance(10)
                       ? std::min(limit.max, random_.between(2, dearest_))
                       : 1;
        }

        int64_t kind = random_.below(100);

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

    /* Of a request with so many limits. */
    size_t goes_through(size_t limits = 1) const
    {
        return static_cast<size_t>(store_.goes_through)
               - static_cast<size_t>(store_.fewer_for_limit) * (limits - 1);
    }

    bool may_forget(const Limit &limit, const Answer &answer)
    {
        int64_t remembered = store_.remembers_more;

        if (!mix_.costs) {
            remembered += store_.remembers_of_max * limit.max;
        } else if (answer.used > store_.remembers_costs) {
            remembered = 0;
        }

        return limit.counts_refused && !limit.has_buckets()
               && static_cast<int64_t>(model_.size(limit.key)) >= remembered;
    }

    static bool has_backlog(const std::vector<Key> &keys)
    {
        return std::any_of(keys.begin(), keys.end(),
                           [](const Key &key) { return key.backlog > 0; });
    }

    /* What the store may have left behind of those that had left, the first
     * `before` of which were of other limits. */
    void follow_backlog(Key *key, size_t limits, size_t before)
    {
        Model::Passed passed = model_.passed(key->limit.key);
        size_t share = goes_through(limits) / limits;
        size_t removed = before > share ? 0 : share / 2;

        key->backlog += passed.dropped;
        key->backlog -= std::min(key->backlog, removed);

        if (passed.remained == 0 || store_.goes_through == 0
            || key->limit.has_buckets())
        {
            key->backlog = 0;
        }
    }

    /* Every id is one request's, as in real life. */
    uint64_t new_id() { return round_.calls.size() + 1; }

    /* Those of the next request. */
    std::vector<Key *> some_keys()
    {
        std::vector<Key *> keys;

        for (Key &key : round_.keys) {
            keys.push_back(&key);
        }

        if (mix_.alike) {
            return keys_of_a_client(keys);
        }

        auto limits = static_cast<size_t>(random_.between(1, mix_.limits));

        while (keys.size() > limits) {
            keys.erase(keys.begin()
                       + random_.below(static_cast<int64_t>(keys.size())));
        }

        return keys;
    }

    std::vector<Key *> keys_of_a_client(const std::vector<Key *> &keys)
    {
        auto clients = keys.size() / limits_of_request();
        auto first =
            keys.begin()
            + random_.below(static_cast<int64_t>(clients)) * mix_.limits;

        return {first, first + mix_.limits};
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

        for (Shown &shown : call.standing.entries) {
            shown.id = store_.shows_ids ? shown.id : 0;
        }

        if (model_.size(key.limit.key) == 0) {
            key.may_forget = false;
            key.backlog = 0;
        }

        /* in buckets that would give back what others have counted since */
        if (call.intervention.act == Act::kForget && key.limit.has_buckets()) {
            keep_from_settling(key.limit);
        }

        if (call.intervention.lasts > 0) {
            ruling_ends_.push_back(now_ + call.intervention.lasts);
        }

        call.may_forget.push_back(key.may_forget);
        call.may_seem_used.push_back(key.backlog > 0);
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

        if (kind < 60 || !key.may_be_overridden) {
            return {Act::kBan, lasts, 0};
        }

        return {Act::kOverride, lasts,
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

    void keep_from_settling(const Limit &forgotten)
    {
        for (Counted &counted : counted_) {
            std::vector<Limit> &limits = counted.limits;

            limits.erase(std::remove_if(limits.begin(), limits.end(),
                                        [&](const Limit &limit) {
                                            return limit.key == forgotten.key;
                                        }),
                         limits.end());
        }

        counted_.erase(std::remove_if(counted_.begin(), counted_.end(),
                                      [](const Counted &counted) {
                                          return counted.limits.empty();
                                      }),
                       counted_.end());
    }

    void ask()
    {
        std::vector<Key *> keys = some_keys();

        go_on();

        Call call{};

        call.time = now_;
        call.id = new_id();

        for (Key *key : keys) {
            if (mix_.changes && random_.chance(3)) {
                change_algorithm(key);
            }

            call.limits.push_back(limit_of(*key));
        }

        call.answers = model_.ask(now_, call.id, call.limits);
        call.may_be_short = store_.goes_through > 0
                            && model_.touched() > goes_through(keys.size());
        wait_ = call.answers[0].wait;

        Counted counted{now_, call.id, {}};
        size_t dropped = 0;

        for (size_t i = 0; i < keys.size(); i++) {
            Key &key = *keys[i];
            const Limit &limit = call.limits[i];
            size_t size = model_.size(limit.key);

            if (size == 0) {
                key.may_forget = false;
            } else if (may_forget(limit, call.answers[i])) {
                key.may_forget = true;
            }

            follow_backlog(&key, keys.size(), dropped);
            dropped += model_.passed(limit.key).dropped;

            call.sizes.push_back(size);
            call.may_forget.push_back(key.may_forget);
            call.may_seem_used.push_back(key.backlog > 0);
            call.may_be_short = call.may_be_short || key.backlog > 0;

            bool has_looked = mix_.settles && limit.cost == 0;

            if ((call.answers[i].admits == 2 || has_looked)
                && limit.may_be_settled) {
                counted.limits.push_back(limit);
            }
        }

        if (!counted.limits.empty()) {
            counted_.push_back(std::move(counted));
        }

        round_.calls.push_back(std::move(call));
    }

    /* Soon or late, all of it or a part, and now and then once more. */
    void settle()
    {
        size_t index = counted_.size() - 1;

        if (random_.chance(40)) {
            index = static_cast<size_t>(
                random_.below(static_cast<int64_t>(counted_.size())));
        }

        /* the others are never settled, so that who comes once more is known */
        if (mix_.settles) {
            choose_true_costs(&counted_[index]);
        }

        Counted counted = counted_[index];

        forget_counted(index);

        if (!mix_.settles && counted.limits.size() > 1 && random_.chance(30)) {
            counted.limits.pop_back();
        }

        /* what is forgotten could have mattered, if this was newer */
        if (mix_.steps_back && is_any_forgotten(counted.limits)) {
            return;
        }

        /* what has cost more gets a time of its own */
        if (mix_.settles) {
            go_on();
        } else {
            pass_time();
        }

        for (Limit &limit : counted.limits) {
            limit.algorithm = key_of(limit).limit.algorithm;
        }

        if (counted.is_settled) {
            keep_what_changes_nothing(&counted);
        }

        if (!counted.limits.empty()) {
            settle(counted);
        }
    }

    void settle(const Counted &counted)
    {
        Call call{};
        size_t dropped = 0;

        call.settles = true;
        call.time = now_;
        call.then = counted.time;
        call.id = counted.id;
        call.limits = counted.limits;
        call.settled = model_.settle(now_, call.then, call.id, call.limits);

        for (const Limit &limit : call.limits) {
            if (limit.true_cost > limit.cost) {
                follow_backlog(&key_of(limit), call.limits.size(), dropped);
                dropped += model_.passed(limit.key).dropped;
            }
        }

        /* what has left may still be there */
        if (has_backlog(round_.keys)) {
            call.settled.at_most = static_cast<int>(call.limits.size());
        }

        round_.calls.push_back(std::move(call));
    }

    /* What a request turns out to have cost. */
    void choose_true_costs(Counted *counted)
    {
        std::vector<Limit> &limits = counted->limits;

        if (counted->is_settled) {
            return;
        }

        if (limits.size() > 1 && random_.chance(30)) {
            limits.pop_back();
        }

        bool is_nothing = random_.chance(20);

        for (Limit &limit : limits) {
            limit.true_cost = is_nothing ? 0 : true_cost_of(limit);
        }
    }

    int64_t true_cost_of(const Limit &limit)
    {
        constexpr int64_t kMost = 1000000000000000;
        int64_t kind = random_.below(100);
        int64_t cost = limit.cost;

        /* the sum must be known to be cut */
        if (is_huge() && key_of(limit).backlog > 0) {
            return random_.between(0, cost);
        }

        if (is_ruinous_ && kind >= 15) {
            return random_.between(std::clamp(cost, kMost / 2, kMost), kMost);
        }

        if (kind < 40) {
            return random_.between(0, cost);
        }

        if (kind < 50) {
            return cost;
        }

        int64_t most = kind < 70   ? cost + 5
                       : kind < 90 ? cost + 1 + limit.max / 4
                       : kind < 98 ? 2 * limit.max
                                   : 10 * limit.max;

        return random_.between(std::min(cost, kMost), std::min(most, kMost));
    }

    /* Once more is for what can be told to have been settled: what was counted
     * then may have left by now, or have become one with others. */
    void keep_what_changes_nothing(Counted *counted)
    {
        auto changes_something = [&](const Limit &limit) {
            Model copy = model_;

            return copy.settle(now_, counted->time, counted->id, {limit})
                       .at_most
                   > 0;
        };
        std::vector<Limit> &limits = counted->limits;

        limits.erase(
            std::remove_if(limits.begin(), limits.end(), changes_something),
            limits.end());
    }

    /* So that it is not settled once more: now and then it is, but only in
     * logs, as in buckets that would change what another has counted. */
    void forget_counted(size_t index)
    {
        Counted &counted = counted_[index];
        std::vector<Limit> &limits = counted.limits;

        counted.is_settled = mix_.settles;
        limits.erase(std::remove_if(limits.begin(), limits.end(),
                                    [](const Limit &limit) {
                                        return limit.has_buckets();
                                    }),
                     limits.end());

        if (limits.empty() || !random_.chance(10)) {
            counted_.erase(counted_.begin()
                           + static_cast<std::ptrdiff_t>(index));
        }
    }

    bool is_any_forgotten(const std::vector<Limit> &limits)
    {
        return std::any_of(
            limits.begin(), limits.end(),
            [&](const Limit &limit) { return key_of(limit).may_forget; });
    }

    Key &key_of(const Limit &limit)
    {
        return *std::find_if(
            round_.keys.begin(), round_.keys.end(),
            [&](const Key &key) { return key.limit.key == limit.key; });
    }
};

}  // namespace sl_model
