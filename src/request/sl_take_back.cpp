#include "request/sl_take_back.h"

#include <utility>

namespace sl {

namespace {

/* Names those that `take` takes, of the limit at `index` and of the later ones
 * that were asked about together with it. */
template <typename Take>
Query query_of(AppliedLimits &limits, size_t index, const Store &from,
               RequestId *id, Take take)
{
    size_t question = limits[index].asked_with;
    Query query;

    query.count = 0;
    query.id = from.uses_ids() ? id->text() : std::string_view();
    query.first_key = view(limits[question].key);

    for (size_t i = index; i < limits.size(); i++) {
        AppliedLimit &other = limits[i];

        if (other.asked_with == question && take(&other)) {
            query.limits[query.count++] = to_query(other);
        }
    }

    return query;
}

}  // namespace

/* There is one call for all that one question has counted. */
void take_back_counted(AppliedLimits *limits, size_t first,
                       bool (*goes)(const AppliedLimit &),
                       RequestId *id) noexcept
{
    auto take = [goes](AppliedLimit *applied) {
        bool is_taken = applied->stored.is_counted && goes(*applied);

        if (is_taken) {
            applied->stored = uncounted(applied->stored, applied->cost);
            applied->verdict.state = applied->stored;
        }

        return is_taken;
    };

    for (size_t i = first; i < limits->size(); i++) {
        const AppliedLimit &applied = (*limits)[i];

        if (applied.stored.is_counted && goes(applied)) {
            Store *store = applied.answered_by;

            store->take_back(query_of(*limits, i, *store, id, take),
                             applied.counted_at_us);
        }
    }
}

void take_back_uncertain(AppliedLimits *limits, size_t first,
                         RequestId *id) noexcept
{
    auto take = [](AppliedLimit *applied) {
        return std::exchange(applied->is_uncertain, false);
    };

    for (size_t i = first; i < limits->size(); i++) {
        const AppliedLimit &applied = (*limits)[i];

        if (applied.is_uncertain) {
            Store *store = applied.limit->zone->store;

            store->take_back(query_of(*limits, i, *store, id, take),
                             Store::kUncertain);
        }
    }
}

}  // namespace sl
