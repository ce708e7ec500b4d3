/* Takes back what stores have counted of a request. Nobody waits for it. */

#pragma once

#include "request/sl_applied_limit.h"
#include "request/sl_request_id.h"

namespace sl {

/* Of the limits from index `first` on, what is counted and `goes`. */
void take_back_counted(AppliedLimits *limits, size_t first,
                       bool (*goes)(const AppliedLimit &),
                       RequestId *id) noexcept;

/*
 * A store that did not answer in time may yet count the request: what takes
 * that back follows on the same way, and is executed after it. Not for requests
 * that have passed without an answer: they count, late or not.
 */
void take_back_uncertain(AppliedLimits *limits, size_t first,
                         RequestId *id) noexcept;

}  // namespace sl
