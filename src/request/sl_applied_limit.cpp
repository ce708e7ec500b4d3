#include "request/sl_applied_limit.h"

#include <algorithm>

namespace sl {

namespace {

/*
 * Where a store decides about limits one by one, what one of them has counted
 * is taken back if another refuses: a refusal may end before its time.
 */
bool is_decided_alone(const Zone &zone)
{
    return zone.has_company
           && zone.store->decides_together() == Together::kNone;
}

}  // namespace

void note(AppliedLimit *applied, const LimitState &state,
          std::string_view decided_by) noexcept
{
    applied->verdict.known = true;
    applied->verdict.max =
        state.ruled_max != kOwnMax ? state.ruled_max : applied->max;
    applied->verdict.state = state;
    applied->stored = state;
    applied->decided_by = decided_by;
    applied->at = ngx_current_msec;
}

LimitQuery to_query(const AppliedLimit &applied) noexcept
{
    const Limit &limit = *applied.limit;
    bool is_alone = is_decided_alone(*limit.zone);

    return LimitQuery{view(limit.zone->name),
                      view(applied.key),
                      static_cast<int64_t>(limit.zone->window) * 1000,
                      applied.max,
                      applied.cost,
                      limit.zone->algorithm,
                      limit.zone->buckets,
                      limit.zone->counts_refused,
                      applied.verdict.dry_run,
                      limit.count_status != nullptr,
                      applied.verdict.state.place,
                      is_alone ? kNoMark : applied.refusal_mark,
                      applied.true_cost,
                      limit.settle != nullptr};
}

bool is_to_be_settled(const AppliedLimit &applied, ngx_uint_t status,
                      bool is_refused) noexcept
{
    if (applied.answered_by == nullptr) {
        return false;
    }

    if (applied.stored.is_counted) {
        return true;
    }

    /* who reserves nothing is admitted, and nothing is there to be counted */
    bool is_admitted =
        applied.cost == 0 && applied.stored.admits && !is_refused;

    return is_admitted
           && (applied.limit->count_status == nullptr
               || counts_with(applied, status));
}

bool counts_with(const AppliedLimit &applied, ngx_uint_t status) noexcept
{
    const StatusList *list = applied.limit->count_status;

    return list != nullptr && list->contains(static_cast<unsigned>(status));
}

bool AppliedLimits::init(ngx_pool_t *pool) noexcept
{
    return ngx_array_init(&array_, pool, 2, sizeof(AppliedLimit)) == NGX_OK;
}

AppliedLimit *AppliedLimits::add() noexcept
{
    auto *added = static_cast<AppliedLimit *>(ngx_array_push(&array_));

    if (added != nullptr) {
        *added = AppliedLimit{};
    }

    return added;
}

bool AppliedLimits::have_zone(const Zone &zone) const noexcept
{
    auto limits = all();

    return std::any_of(limits.begin(), limits.end(),
                       [&zone](const AppliedLimit &applied) {
                           return applied.limit->zone == &zone;
                       });
}

bool AppliedLimits::have_failed(const Store &store) const noexcept
{
    auto limits = all();

    return std::any_of(
        limits.begin(), limits.end(), [&store](const AppliedLimit &applied) {
            return applied.has_failed && applied.limit->zone->store == &store;
        });
}

int64_t AppliedLimits::waited_for(const Store &store) const noexcept
{
    int64_t waited_us = 0;

    for (const AppliedLimit &applied : all()) {
        if (applied.limit->zone->store == &store) {
            waited_us += applied.waited_us;
        }
    }

    return waited_us;
}

const AppliedLimit *AppliedLimits::shown() const noexcept
{
    const AppliedLimit *shown = nullptr;

    for (const AppliedLimit &applied : all()) {
        if (shown == nullptr || outweighs(applied.verdict, shown->verdict)) {
            shown = &applied;
        }
    }

    return shown;
}

}  // namespace sl
