/* What came of a request, and of each of its limits. */

#pragma once

#include "metrics/pure/sl_metrics.h"
#include "request/pure/sl_verdict.h"

namespace sl {

/* Where there are several, the later one in this list outweighs the others. */
enum class Outcome {
    kNone,
    kExempt,
    kPassed,
    kRejectedDryRun,
    kFailedOpen,
    kFailedClosed,
    kRejected,
    kBanned,
};

Outcome outweighing(Outcome a, Outcome b) noexcept;

/* One of its limits refuses it, and it is known how long: it is over the limit,
 * or its client is banned. */
inline bool is_rejection(Outcome outcome) noexcept
{
    return outcome == Outcome::kRejected || outcome == Outcome::kBanned;
}

/* The request does not pass. */
inline bool is_refusal(Outcome outcome) noexcept
{
    return is_rejection(outcome) || outcome == Outcome::kFailedClosed;
}

/* What one limit alone leads to; kNone as long as there is no answer. */
Outcome outcome_of(const Verdict &verdict) noexcept;

/*
 * What the metrics of a limit's zone are told of a request with this outcome.
 * `has_failed`: the store that counts for the zone gave no answer.
 */
ZoneResult result_of(const Verdict &verdict, bool has_failed,
                     Outcome outcome) noexcept;

/*
 * Which counter of ZoneMetrics::found_used such a result adds to, if the
 * request has this cost: that of what was used before it came.
 */
size_t found_by(const Verdict &verdict, int64_t cost,
                ZoneResult result) noexcept;

}  // namespace sl
