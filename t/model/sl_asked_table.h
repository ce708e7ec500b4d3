/*
 * A table of the embedded store, asked what calls of the model say, with a
 * clock that may be behind theirs.
 */

#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sl_model.h"
#include "sl_queries.h"
#include "sl_schedule.h"
#include "store/pure/sl_memory_table.h"

namespace sl_model {

/* How the table may differ from the model. */
constexpr Store kMemory{true, false, INT64_MAX, 750};

class AskedTable {
  public:
    explicit AskedTable(sl::MemoryTable table) : table_(table) {}

    sl::MemoryTable &table() { return table_; }

    /* What the table says, as the script would; none if it does not know. */
    std::vector<int64_t> answer(const Call &call, int64_t behind = 0)
    {
        Queries queries(call.limits);

        if (call.settles) {
            /* it does not say how many */
            return settle(call, queries, call.time - behind)
                       ? std::vector<int64_t>{call.settled.at_most}
                       : std::vector<int64_t>{};
        }

        told_ = call.time;

        if (call.intervenes) {
            return intervene(call, queries[0], call.time - behind);
        }

        std::vector<sl::LimitState> states(queries.size());
        std::vector<int64_t> numbers;
        sl::Decided decided = sl::Decided::kNotYet;
        int64_t time;

        while (decided == sl::Decided::kNotYet) {
            decided = table_.ask(queries.data(), queries.size(),
                                 call.time - behind, states.data(), &time);
        }

        if (decided != sl::Decided::kYes) {
            return {};
        }

        for (size_t i = 0; i < states.size(); i++) {
            const sl::LimitState &state = states[i];

            numbers.push_back(state.is_banned    ? 3
                              : !state.admits    ? 0
                              : state.is_counted ? 2
                                                 : 1);
            numbers.push_back(state.used);
            numbers.push_back(state.wait_us);
            places_[{call.id, call.limits[i].key}] = state.place;
        }

        numbers.push_back(time);

        for (const sl::LimitState &state : states) {
            numbers.push_back(state.ruled_max);
        }

        return numbers;
    }

    /* The time of the last call that told the table what time it is; 0: none
     * has. */
    int64_t told() const { return told_; }

  private:
    sl::MemoryTable table_;
    int64_t told_ = 0;

    /* Those of which more was counted when they were settled, by id and key:
     * the table does not know whose that is, so it must not be told again. */
    std::set<std::pair<uint64_t, int>> raised_;

    /* Where each request was counted, by its id and key. */
    std::map<std::pair<uint64_t, int>, uint64_t> places_;

    std::vector<int64_t> intervene(const Call &call,
                                   const sl::LimitQuery &client, int64_t clock)
    {
        static_assert(static_cast<int>(Act::kOverride)
                              == static_cast<int>(sl::Act::kOverride)
                          && static_cast<int>(Act::kBan)
                                 == static_cast<int>(sl::Act::kBan)
                          && static_cast<int>(Act::kForget)
                                 == static_cast<int>(sl::Act::kForget),
                      "the same in the same order");

        sl::Intervention intervention{
            static_cast<sl::Act>(call.intervention.act),
            call.intervention.lasts, call.intervention.max};
        sl::Standing standing;
        sl::Decided decided = sl::Decided::kNotYet;

        while (decided == sl::Decided::kNotYet) {
            decided = table_.intervene(client, intervention, clock, &standing);
        }

        return decided == sl::Decided::kYes ? numbers_of(standing)
                                            : std::vector<int64_t>{};
    }

    static std::vector<int64_t> numbers_of(const sl::Standing &standing)
    {
        std::vector<int64_t> numbers{standing.used,        standing.wait_us,
                                     standing.ban_left_us, standing.max,
                                     standing.max_left_us, standing.entries};

        for (size_t i = 0; i < standing.shown; i++) {
            const sl::CountedRequest &request = standing.requests[i];

            numbers.push_back(request.ago_us);
            numbers.push_back(request.cost);
            numbers.push_back(0);
        }

        return numbers;
    }

    bool settle(const Call &call, const Queries &queries, int64_t clock)
    {
        std::vector<sl::LimitQuery> limits;

        for (size_t i = 0; i < queries.size(); i++) {
            std::pair<uint64_t, int> whose{call.id, call.limits[i].key};
            sl::LimitQuery limit = queries[i];

            limit.place = places_[whose];

            if (limit.true_cost <= limit.cost) {
                limits.push_back(limit);
            } else if (raised_.insert(whose).second) {
                limits.push_back(limit);
                told_ = call.time;
            }
        }

        return table_.settle(limits.data(), limits.size(), call.then, clock)
               == sl::Decided::kYes;
    }
};

}  // namespace sl_model
