/*
 * Changes what stores have counted of a request to what it costs after all; it
 * does not wait for it.
 */

#pragma once

#include "request/sl_applied_limit.h"
#include "request/sl_request_id.h"

namespace sl {

/* Takes back what is counted of the limits from index `first` on, as far as it
 * `goes`. */
void take_back_counted(AppliedLimits *limits, size_t first,
                       bool (*goes)(const AppliedLimit &),
                       RequestId *id) noexcept;

/*
 * Takes back what a store may yet count that did not answer in time: this
 * follows on the same way, and is executed after it. It is not for requests
 * that have passed without an answer: they count, late or not.
 */
void take_back_uncertain(AppliedLimits *limits, size_t first,
                         RequestId *id) noexcept;

/* Has stores count the true costs of those limits that are not settled. */
void settle_costs(AppliedLimits *limits, RequestId *id) noexcept;

}  // namespace sl
