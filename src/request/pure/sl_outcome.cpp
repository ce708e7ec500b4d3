#include "request/pure/sl_outcome.h"

#include <algorithm>

namespace sl {

Outcome outweighing(Outcome a, Outcome b) noexcept
{
    return std::max(a, b);
}

Outcome outcome_of(const Verdict &verdict) noexcept
{
    if (is_refusal(verdict)) {
        return verdict.state.is_banned ? Outcome::kBanned : Outcome::kRejected;
    }

    if (is_dry_refusal(verdict)) {
        return Outcome::kRejectedDryRun;
    }

    return verdict.known ? Outcome::kPassed : Outcome::kNone;
}

ZoneResult result_of(const Verdict &verdict, bool has_failed,
                     Outcome outcome) noexcept
{
    if (is_refusal(verdict)) {
        return verdict.state.is_banned ? ZoneResult::kBanned
                                       : ZoneResult::kRejected;
    }

    if (is_dry_refusal(verdict)) {
        return ZoneResult::kRejectedDryRun;
    }

    bool is_unknown = has_failed && !verdict.known;

    if (is_unknown && outcome == Outcome::kFailedClosed) {
        return ZoneResult::kFailedClosed;
    }

    if (is_refusal(outcome)) {
        return ZoneResult::kRejectedElsewhere;
    }

    if (is_unknown) {
        return ZoneResult::kFailedOpen;
    }

    return verdict.known ? ZoneResult::kPassed : ZoneResult::kAborted;
}

size_t found_by(const Verdict &verdict, int64_t cost,
                ZoneResult result) noexcept
{
    const LimitState &state = verdict.state;

    switch (result) {
    case ZoneResult::kPassed:
        return tenth_of(state.is_counted ? state.used - cost : state.used,
                        verdict.max);
    case ZoneResult::kRejected:
    case ZoneResult::kBanned:
    case ZoneResult::kRejectedDryRun:
        return kFoundRefused;
    default:
        return kFoundNothing;
    }
}

}  // namespace sl
