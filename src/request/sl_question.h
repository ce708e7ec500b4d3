/*
 * One question of a request to a store, and what came of it: which limits it is
 * about, what is known without asking, and what the answer means, or that there
 * was none.
 *
 * A request's check asks questions, as many as it needs. Query is what a store
 * is told of one of them. To Redis it goes as one or several calls of the
 * script, each of which is a command on a connection, and calls of different
 * requests may share a batch.
 */

#pragma once

#include "request/pure/sl_outcome.h"
#include "request/sl_applied_limit.h"

namespace sl {

struct Question {
    Store *store;
    int64_t asked_us; /* by monotonic_us() */

    AppliedLimit *limits[kMaxLimits];
    size_t count; /* 0: there is nothing to ask */

    AppliedLimit *const *begin() const noexcept { return limits; }
    AppliedLimit *const *end() const noexcept { return limits + count; }
};

/* Asks about limits that have not been asked about: from now on they have. */
Question next_question(AppliedLimits *limits) noexcept;

/* The request's id is missing in the query: not every store needs it. */
Query to_query(const Question &question) noexcept;

/*
 * Whether a refusal by one of the limits is remembered, and was confirmed not
 * longer ago than that. If so, the verdicts say it: nobody need be asked.
 */
bool recall_refusals(ngx_http_request_t *r, const Question &question,
                     const Query &query, int64_t max_age_us) noexcept;

/* What the limits' verdicts mean for the request; logs refusals by dry runs. */
Outcome judge(ngx_http_request_t *r, const AppliedLimit &applied) noexcept;
Outcome judge(ngx_http_request_t *r, const Question &question) noexcept;

/*
 * What the answer means for the request. If the store has failed: what is known
 * nevertheless, what the memory of this nginx says instead, or what on_error
 * says.
 */
Outcome interpret(ngx_http_request_t *r, const Question &question,
                  const Answer &answer) noexcept;

/* Whether the store has found out that it cannot decide about all of these
 * limits together. It has counted nothing then. */
bool is_to_be_divided(const Question &question, const Answer &answer) noexcept;

/* Takes the question for not asked: several others will take its place. */
void divide(const Question &question) noexcept;

}  // namespace sl
