/* The limits that apply to a request, and what is known of each. */

#pragma once

#include "base/sl_nginx.h"
#include "request/pure/sl_verdict.h"
#include "request/sl_conf.h"
#include "store/sl_store.h"

namespace sl {

/* For AppliedLimit::decided_by: a refusal that was remembered. */
constexpr std::string_view kDenyCache = "deny_cache";

/* A limit as it applies to one request, from its values to its answer. */
struct AppliedLimit {
    const Limit *limit;
    ngx_str_t key;
    int64_t max;
    int64_t cost;

    /* What is known of the limit, with the max that this request has: an
     * operator may have given the client another one. */
    Verdict verdict;

    /* The limit's store has been asked, or need not be. */
    bool is_asked;

    /* Index of the first limit that was asked about in the same question. */
    size_t asked_with;

    /* How long the request waited for what it asked about this limit first. */
    int64_t waited_us;

    /* The store has been asked, and has not answered. */
    bool has_failed;

    /* The store has not answered, and may have counted the request, or will. */
    bool is_uncertain;

    /* A refusal is known, and this request finds out whether it still holds. */
    bool is_rechecked;

    /* For the deny cache; kNoMark: refusals are not remembered here. */
    RefusalMark refusal_mark;

    /* For $sliding_limit_store. */
    std::string_view decided_by;

    /* Who answered; nullptr: nobody had to be asked, or nobody answered. */
    Store *answered_by;

    /* When the verdict became known, in nginx's milliseconds. */
    ngx_msec_t at;

    /* What the store has counted. What is shown of it, in the verdict, may
     * differ: as if the request were not counted. */
    LimitState stored;

    /* If the request is counted: when, by the store's clock. */
    int64_t counted_at_us;

    /* What the request has cost after all, and that its store has yet to be
     * told. (Where it is taken back: nothing.) */
    int64_t true_cost;
    bool is_unsettled;
};

/* Notes what somebody has decided about the limit. */
void note(AppliedLimit *applied, const LimitState &state,
          std::string_view decided_by) noexcept;

/* What a store is told of the limit. */
LimitQuery to_query(const AppliedLimit &applied) noexcept;

/*
 * For a limit with settle=: whether what the request has cost becomes known
 * when it ends with this status. Its store has counted it, or was told to count
 * nothing yet. `is_refused`: the request was, in the location of the limit.
 */
bool is_to_be_settled(const AppliedLimit &applied, ngx_uint_t status,
                      bool is_refused) noexcept;

/* Whether the limit counts only with certain statuses, and this is one. */
bool counts_with(const AppliedLimit &applied, ngx_uint_t status) noexcept;

/* All limits that applied to a request so far, in the order that it met them.
 */
class AppliedLimits {
  public:
    /* False: out of memory. */
    bool init(ngx_pool_t *pool) noexcept;

    /* One more, with nothing known of it; nullptr: out of memory. What points
     * to the others is not valid any more. */
    AppliedLimit *add() noexcept;

    bool have_zone(const Zone &zone) const noexcept;

    /* The store has been asked about one of them, and has not answered. */
    bool have_failed(const Store &store) const noexcept;

    /* Microseconds that the request has waited for the store. */
    int64_t waited_for(const Store &store) const noexcept;

    /* The limit that headers and variables show; nullptr: there is none. */
    const AppliedLimit *shown() const noexcept;

    size_t size() const noexcept { return array_.nelts; }

    AppliedLimit &operator[](size_t i) noexcept
    {
        return elements<AppliedLimit>(array_)[i];
    }

    Elements<const AppliedLimit> all() const noexcept
    {
        return elements<const AppliedLimit>(array_);
    }

  private:
    ngx_array_t array_ = {};
};

}  // namespace sl
