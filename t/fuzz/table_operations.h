/* What workers do with a table, as the bytes of an input say. */

#pragma once

#include <string>
#include <vector>

#include "fuzz.h"
#include "store/pure/sl_memory_table.h"

class Operations {
  public:
    Operations(sl::MemoryTable table, Input *input)
        : table_(table), input_(*input)
    {}

    void do_one()
    {
        uint8_t kind = byte();

        if (kind >= kOperators) {
            kind % 4 != 0 ? intervene() : list_rulings();
            return;
        }

        switch (kind % 8) {
        case 0:
        case 1:
            pass_time();
            break;
        case 2:
            ask_often();
            break;
        case 3:
            settle();
            break;
        case 4:
            remember();
            break;
        case 5:
            recall();
            break;
        case 6:
            table_.forget(limit_of(0));
            break;
        default:
            ask();
        }
    }

    /* A client that nobody has seen before is counted as it should be. */
    void check_newcomer()
    {
        std::string name = "newcomer" + std::to_string(newcomers_++);
        sl::LimitQuery limit{
            "new", name,  3600000000, 3,    1, sl::Algorithm::kLog,
            0,     false, false,      false};
        sl::LimitState state;
        int64_t time;

        for (int64_t i = 1; i <= 4; i++) {
            check(ask(&limit, 1, &state, &time));
            check(state.admits == (i <= 3));
            check(state.used == std::min<int64_t>(i, 3));
            check(0 < state.wait_us && state.wait_us <= limit.window_us);
        }
    }

  private:
    struct Counted {
        std::string key;
        sl::LimitQuery limit;
        int64_t time;
    };

    /* From here on operators do something, not workers. */
    static constexpr uint8_t kOperators = 224;

    sl::MemoryTable table_;
    Input &input_;
    std::string names_[sl::kMaxLimits];
    std::vector<Counted> counted_;
    int64_t clock_ = 1000000000;
    int64_t wait_ = 0;
    unsigned newcomers_ = 0;

    uint8_t byte() { return input_.number<uint8_t>(); }

    template <typename T, size_t N>
    T one_of(const T (&values)[N])
    {
        return values[byte() % N];
    }

    /* The same zone's limit changes as it may with configurations. */
    sl::LimitQuery limit_of(size_t zone)
    {
        static const char *const kZones[sl::kMaxLimits] = {"a", "b", "c", "d"};
        static const int64_t kWindows[] = {
            1, 1000, 1000000, 60000000, 3600000000, 31 * 86400 * 1000000LL};
        static const int64_t kMost[] = {
            1, 2, 3, 10, 100, 1000, 1000000000000000};
        static const unsigned kBuckets[] = {0, 0, 0, 0, 1, 6, 100};

        sl::LimitQuery limit{};
        uint8_t kind = byte();

        names_[zone] = std::to_string(byte());
        limit.zone = kZones[zone];
        limit.key = names_[zone];
        limit.window_us = one_of(kWindows);
        limit.max = one_of(kMost);
        limit.buckets = one_of(kBuckets);
        limit.algorithm = limit.buckets ? sl::Algorithm::kBuckets
                          : kind & 32   ? sl::Algorithm::kPacked
                                        : sl::Algorithm::kLog;
        limit.cost = std::min<int64_t>(limit.max, kind % 8 < 6 ? 1 : byte());
        limit.counts_refused = kind & 8;
        limit.dry_run = kind & 16;
        limit.refusal_mark = kind & 64;

        return limit;
    }

    void pass_time()
    {
        uint8_t kind = byte();
        int64_t step = int64_t{1} << kind % 42;

        if (kind < 64) {
            clock_ += wait_;
        } else if (kind < 224) {
            clock_ += step;
        } else {
            clock_ = std::max<int64_t>(0, clock_ - step);
        }
    }

    void ask()
    {
        sl::LimitQuery limits[sl::kMaxLimits];
        sl::LimitState states[sl::kMaxLimits];
        size_t count = 1 + byte() % 4;
        int64_t time;

        for (size_t i = 0; i < count; i++) {
            limits[i] = limit_of(i);
        }

        if (!ask(limits, count, states, &time)) {
            return;
        }

        for (size_t i = 0; i < count; i++) {
            if (states[i].is_counted) {
                keep(limits[i], states[i], time);
            }
        }
    }

    /* The same again and again: this makes long chains. */
    void ask_often()
    {
        sl::LimitQuery limit = limit_of(0);
        uint8_t times = byte();

        for (uint8_t i = 0; i < times; i++) {
            sl::LimitState state;
            int64_t time;

            if (ask(&limit, 1, &state, &time) && state.is_counted) {
                keep(limit, state, time);
            }
        }
    }

    bool ask(const sl::LimitQuery *limits, size_t count, sl::LimitState *states,
             int64_t *time)
    {
        sl::Decided decided = sl::Decided::kNotYet;

        /* there are not more blocks than can be dropped in a few calls */
        for (int i = 0; i < 16 && decided == sl::Decided::kNotYet; i++) {
            decided = table_.ask(limits, count, clock_, states, time);
        }

        check(decided != sl::Decided::kNotYet);

        for (size_t i = 0; decided == sl::Decided::kYes && i < count; i++) {
            check(states[i].used >= 0);
            check(states[i].wait_us >= 0);
            check_max(limits[i], states[i]);
            wait_ = states[i].wait_us;
        }

        return decided == sl::Decided::kYes;
    }

    static void check_max(const sl::LimitQuery &limit,
                          const sl::LimitState &state)
    {
        bool is_ruled = state.ruled_max != sl::kOwnMax;

        check(!state.is_counted
              || state.used <= (is_ruled ? state.ruled_max : limit.max));
        check(state.used <= sl::kMostUsed);
        check(!state.is_banned || !state.admits);
    }

    void intervene()
    {
        static const int64_t kLengths[] = {
            0, 1, 1000, 1000000, 3600000000, INT64_MAX, 31 * 86400 * 1000000LL};
        static const sl::Act kActs[] = {sl::Act::kLook, sl::Act::kForget,
                                        sl::Act::kBan, sl::Act::kOverride};

        sl::LimitQuery client = limit_of(byte() % 4);
        sl::Intervention intervention{one_of(kActs), one_of(kLengths),
                                      client.max};
        sl::Decided decided = sl::Decided::kNotYet;
        sl::Standing standing;

        for (int i = 0; i < 16 && decided == sl::Decided::kNotYet; i++) {
            decided = table_.intervene(client, intervention, clock_, &standing);
        }

        check(decided != sl::Decided::kNotYet);

        if (decided == sl::Decided::kYes) {
            check_standing(client, standing);
            check_ruled(intervention, standing);
            wait_ = std::max(standing.ban_left_us, standing.max_left_us);
        }
    }

    static void check_standing(const sl::LimitQuery &client,
                               const sl::Standing &standing)
    {
        auto shown = static_cast<int64_t>(standing.shown);
        int64_t cost = 0;

        check((standing.entries == 0) == (standing.wait_us == sl::kNoWait));

        for (size_t i = 0; i < standing.shown; i++) {
            const sl::CountedRequest &request = standing.requests[i];

            check(i == 0 || request.ago_us >= standing.requests[i - 1].ago_us);
            check(request.cost > 0);
            cost += request.cost;
        }

        check(standing.shown < sl::Standing::kMostShown
                  ? cost == standing.used
                  : cost <= standing.used);
        check(client.buckets == 0     ? standing.entries == standing.used
              : cost == standing.used ? standing.entries == shown
                                      : standing.entries > shown);
    }

    static void check_ruled(const sl::Intervention &intervention,
                            const sl::Standing &standing)
    {
        int64_t lasts = std::min(intervention.for_us, sl::kLongestRuling);

        switch (intervention.act) {
        case sl::Act::kLook:
            break;

        case sl::Act::kForget:
            check(standing.used == 0 && standing.ban_left_us == 0);
            break;

        case sl::Act::kBan:
            check(standing.ban_left_us == lasts);
            break;

        case sl::Act::kOverride:
            check(standing.max == (lasts > 0 ? intervention.max : sl::kOwnMax));
            check(standing.max_left_us == lasts);
            break;
        }
    }

    void list_rulings()
    {
        static const char *const kZones[] = {"a", "b", "new", ""};
        sl::RulingsPage page;

        table_.list_rulings(one_of(kZones), byte(), clock_, &page);
        check(page.count <= table_.most_rulings());

        for (size_t i = 0; i < page.count; i++) {
            const sl::RuledClient &client = page.clients[i];

            check(!client.key.empty());
            check(client.ban_left_us > 0 || client.max_left_us > 0);
            check((client.max != sl::kOwnMax) == (client.max_left_us > 0));
        }
    }

    void keep(const sl::LimitQuery &limit, const sl::LimitState &state,
              int64_t time)
    {
        counted_.push_back({std::string(limit.key), limit, time});
        counted_.back().limit.place = state.place;
    }

    /* To nothing, or less, or more. Now and then once more, or what has been
     * forgotten since. */
    void settle()
    {
        static const int64_t kTrueCosts[] = {
            0, 0, 1, 2, 5, 1000, 1 << 30, 1000000000000000};

        if (counted_.empty()) {
            return;
        }

        Counted &counted =
            counted_[input_.number<uint16_t>() % counted_.size()];

        counted.limit.key = counted.key;
        counted.limit.true_cost = one_of(kTrueCosts);
        table_.settle(&counted.limit, 1, counted.time, clock_);
    }

    void remember()
    {
        sl::LimitQuery limit = limit_of(0);
        sl::LimitState state{false, false, byte(), int64_t{1} << byte() % 50};

        state.is_banned = state.used % 8 == 1;
        state.ruled_max = state.used % 8 == 2 ? limit.max : sl::kOwnMax;

        table_.remember(limit, state, clock_ - byte(), clock_);
    }

    void recall()
    {
        sl::LimitState state{};
        sl::LimitQuery limit = limit_of(0);
        int64_t max_age = byte() < 128 ? sl::kAnyAge : 1000;

        if (table_.recall(limit, clock_, max_age, &state)
            == sl::Recalled::kRefusal) {
            check(state.used >= 0 && state.wait_us > 0);
            wait_ = state.wait_us;
        }
    }
};
