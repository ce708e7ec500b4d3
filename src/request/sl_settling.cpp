#include "request/sl_settling.h"

namespace sl {

namespace {

/* Who has counted a limit, and when by its clock. */
struct CountedBy {
    Store *store;
    int64_t time_us;
};

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

/* There is one call for all limits of one question that are due. `take` is told
 * that a limit is settled now, if it is due. */
template <typename IsDue, typename Take, typename WhoCounted>
void settle(AppliedLimits *limits, size_t first, RequestId *id, IsDue is_due,
            Take take, WhoCounted who_counted)
{
    auto take_if_due = [&](AppliedLimit *applied) {
        bool is_taken = is_due(*applied);

        if (is_taken) {
            take(applied);
        }

        return is_taken;
    };

    for (size_t i = first; i < limits->size(); i++) {
        if (is_due((*limits)[i])) {
            CountedBy by = who_counted((*limits)[i]);

            by.store->settle(query_of(*limits, i, *by.store, id, take_if_due),
                             by.time_us);
        }
    }
}

CountedBy by_who_answered(const AppliedLimit &applied)
{
    return {applied.answered_by, applied.counted_at_us};
}

}  // namespace

void take_back_counted(AppliedLimits *limits, size_t first,
                       bool (*goes)(const AppliedLimit &),
                       RequestId *id) noexcept
{
    settle(
        limits, first, id,
        [goes](const AppliedLimit &applied) {
            return applied.stored.is_counted && goes(applied);
        },
        [](AppliedLimit *taken) {
            taken->stored = uncounted(taken->stored, taken->cost);
            taken->verdict.state = taken->stored;
        },
        by_who_answered);
}

void take_back_uncertain(AppliedLimits *limits, size_t first,
                         RequestId *id) noexcept
{
    settle(
        limits, first, id,
        [](const AppliedLimit &applied) { return applied.is_uncertain; },
        [](AppliedLimit *taken) { taken->is_uncertain = false; },
        [](const AppliedLimit &applied) {
            return CountedBy{applied.limit->zone->store, Store::kUncertain};
        });
}

void settle_costs(AppliedLimits *limits, RequestId *id) noexcept
{
    settle(
        limits, 0, id,
        [](const AppliedLimit &applied) { return applied.is_unsettled; },
        [](AppliedLimit *settled) { settled->is_unsettled = false; },
        by_who_answered);
}

}  // namespace sl
