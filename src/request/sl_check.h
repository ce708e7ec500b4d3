/*
 * One request's check: which limits apply, what their stores say about them,
 * and what came of it, for the handler, the headers, the variables and the log.
 *
 *   idle ──ask_next()──▶ waiting ──receive()──▶ idle, with an outcome
 *     └───────────── answered at once ────────────┘
 *
 * A refusal that is still known need not be asked for. If a store fails, the
 * question goes to the one in this nginx's memory, or on_error says what now.
 *
 * One question is about all limits that one store can decide together; further
 * stores, phases and locations (after internal redirects) mean further
 * questions. Each zone is asked about once. If a later question is answered
 * with a refusal, what the earlier ones of the same location counted is taken
 * back.
 *
 * A check belongs to the request and outlives its internal redirects. It may
 * be destroyed at any time; the store is told.
 */

#pragma once

#include "base/pure/sl_uuid.h"
#include "base/sl_nginx.h"
#include "request/pure/sl_verdict.h"
#include "request/sl_conf.h"
#include "store/sl_store.h"

namespace sl {

/* A later one outweighs an earlier one, if there are several questions. */
enum class Outcome {
    kNone,
    kExempt,
    kPassed,
    kRejectedDryRun,
    kFailedOpen,
    kFailedClosed,
    kRejected,
};

/* A limit as it applies to this request. */
struct AppliedLimit {
    const Limit *limit;
    ngx_str_t key;
    int64_t cost;

    /* With the max that this request has. */
    Verdict verdict;

    /* Its store has been asked, or nobody has to be. */
    bool is_asked;

    /* The first one that was asked about together with it. */
    ngx_uint_t asked_with;

    /* It has been, and has not answered. */
    bool has_failed;

    /* Nor is it known whether it has counted it, or will. */
    bool is_uncertain;

    /* A refusal is known, and this request finds out whether it still holds. */
    bool is_rechecked;

    /* kNoMark: refusals are not remembered here. */
    size_t refusal_mark;

    /* For $sliding_limit_store. */
    std::string_view decided_by;

    /* Who answered; nullptr: nobody had to be asked, or nobody answered. */
    Store *answered_by;

    /* When, in nginx's milliseconds. */
    ngx_msec_t at;

    /* As it is in the store, while the verdict is about what is shown. */
    LimitState stored;

    /* If it is counted: when, by the store's clock. */
    int64_t counted_at_us;
};

class Check final : public AnswerReceiver {
  public:
    /* The request's check, or nullptr if it has none. */
    static Check *find(ngx_http_request_t *r) noexcept;

    /* nullptr: out of memory. */
    static Check *find_or_create(ngx_http_request_t *r) noexcept;

    /* Adds the limits of the request's location that belong to this phase. */
    void add_limits(Phase phase) noexcept;

    /*
     * Asks a store about limits that have not been asked about. False if there
     * are none left. Otherwise is_waiting(), or outcome() is up to date.
     */
    bool ask_next() noexcept;

    bool is_waiting() const noexcept;

    /* True once after a wait: the store has answered. */
    bool take_answer() noexcept;

    Outcome outcome() const noexcept { return outcome_; }

    bool is_refused() const noexcept
    {
        return outcome_ == Outcome::kRejected
               || outcome_ == Outcome::kFailedClosed;
    }

    /*
     * From now on limits that count only with certain statuses are shown as if
     * the answer had this one. True if that makes a difference.
     */
    bool foresee(ngx_uint_t status) noexcept;

    /*
     * The answer has this status: what does not count with it is taken back,
     * and the metrics hear of it. True if another one was foreseen, and that
     * makes a difference to what is shown.
     */
    bool settle(ngx_uint_t status) noexcept;

    /* The limit that headers and variables show; nullptr: none. */
    const AppliedLimit *shown() const noexcept;

    /* All that applied so far, in the order of the configuration. */
    const AppliedLimit *limits() const noexcept
    {
        return static_cast<const AppliedLimit *>(applied_.elts);
    }

    size_t limit_count() const noexcept { return applied_.nelts; }

    /* UUIDv7, made on first use. */
    std::string_view id() noexcept;

    /* Microseconds spent waiting for stores. */
    int64_t spent_us() const noexcept { return spent_us_; }

    /* A store answered; called by nobody else. */
    void receive(const Answer &answer) noexcept override;

  private:
    explicit Check(ngx_http_request_t *r) noexcept;

    bool add_limit(const Limit *limit) noexcept;
    bool is_applied(const Zone *zone) const noexcept;
    bool has_failed(const Store *store) const noexcept;
    Query question() noexcept;
    bool recall_refusals(const Query &query, int64_t max_age_us) noexcept;
    bool is_to_be_divided(const Answer &answer) noexcept;
    void divide_question() noexcept;
    void conclude(const Answer &answer, bool has_waited) noexcept;
    void do_without_store(StoreError why) noexcept;
    void accept(const Answer &answer, Store *from) noexcept;
    void remember(const AppliedLimit &answered) noexcept;
    static void note(AppliedLimit *applied, const LimitState &state,
                     std::string_view by) noexcept;
    void judge(const AppliedLimit &applied) noexcept;
    void fail() noexcept;
    void raise_outcome(Outcome outcome) noexcept;
    void enter_location() noexcept;
    void note_exempt(const Zone *zone) noexcept;
    void record() noexcept;
    ZoneResult result_of(const AppliedLimit &applied) const noexcept;
    template <typename Predicate>
    void take_back(ngx_uint_t first, Predicate is_to_go) noexcept;
    void take_back_uncertain(ngx_uint_t first) noexcept;
    template <typename Take>
    Query take_of(ngx_uint_t index, const Store &from, Take take) noexcept;
    void abandon_question() noexcept;
    void wait() noexcept;
    void resume() noexcept;

    AppliedLimit *applied() noexcept
    {
        return static_cast<AppliedLimit *>(applied_.elts);
    }

    static void detach(void *data) noexcept;
    static void stay(ngx_http_request_t *r) noexcept;

    ngx_http_request_t *r_;
    PendingQuestion *pending_;
    bool answered_;
    Outcome outcome_;

    ngx_array_t applied_; /* AppliedLimit, in the order they were met */

    /* Index of the first one of the location that the request is in now, and
     * of the first one of which it is open whether it counts. */
    ngx_uint_t first_here_;
    ngx_uint_t first_open_;

    /* Zone *, of which no limit applied. */
    ngx_array_t exempt_;

    /* Of how many the metrics have heard, of both. */
    ngx_uint_t recorded_;
    ngx_uint_t recorded_exempt_;

    /* Indexes of those that the last question is about. */
    ngx_uint_t question_[kMaxLimits];
    size_t question_size_;

    int64_t started_us_;
    int64_t spent_us_;
    bool has_id_;
    char id_[kUuidSize];
};

/* The status that the request has been, or would be, answered with. */
ngx_uint_t status_of(ngx_http_request_t *r) noexcept;

}  // namespace sl
