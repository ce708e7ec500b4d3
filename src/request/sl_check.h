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

#include "base/sl_nginx.h"
#include "base/sl_wakeup.h"
#include "request/pure/sl_outcome.h"
#include "request/sl_applied_limit.h"
#include "request/sl_question.h"
#include "request/sl_report.h"
#include "request/sl_request_id.h"

namespace sl {

class Check final : public AnswerReceiver {
  public:
    /* The request's check, or nullptr if it has none. */
    static Check *find(ngx_http_request_t *r) noexcept;

    /* The request's check, perhaps a new one; nullptr: out of memory. */
    static Check *find_or_create(ngx_http_request_t *r) noexcept;

    /* The first thing that a phase does: an internal redirect may have brought
     * the request to another location. */
    void enter_location() noexcept;

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

    /* If limits refuse the request, this is what the one that is shown does. */
    Outcome outcome() const noexcept { return outcome_; }
    bool is_refused() const noexcept { return is_refusal(outcome_); }

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
    bool answer_with(ngx_uint_t status) noexcept;

    /* The request has ended, with this status: what it has cost is known. */
    void end(ngx_uint_t status) noexcept;

    /*
     * The request's post_action has begun, so the request itself has ended: an
     * upstream that post_action asks takes the place of the one that has
     * answered, and what that said is not known any more. What post_action
     * counts stays open: its own answer is still to come.
     */
    void enter_post_action() noexcept;

    /*
     * A part of the answer is sent. If this turns out to be the last one, costs
     * are settled at the end of this turn of the event loop: nginx may keep the
     * request for much longer, as long as its client goes on sending.
     */
    void sending() noexcept;

    /* The limit that headers and variables show; nullptr: there is none. */
    const AppliedLimit *shown() const noexcept { return limits_.shown(); }

    /* All limits that applied so far, in the order of the configuration. */
    Elements<const AppliedLimit> limits() const noexcept
    {
        return limits_.all();
    }

    size_t limit_count() const noexcept { return limits_.size(); }

    std::string_view id() noexcept { return id_.text(); }

    /* Microseconds spent waiting for stores. */
    int64_t spent_us() const noexcept { return spent_us_; }

    /* Called by the store that was asked, and by nobody else. */
    void receive(const Answer &answer) noexcept override;

  private:
    explicit Check(ngx_http_request_t *r) noexcept;

    Outcome evaluate_limits(Phase phase) noexcept;
    bool add_limit(const Limit &limit) noexcept;
    void wait_for(PendingQuestion *pending, const Question &question) noexcept;
    Outcome finish(const Question &question, const Answer &answer,
                   bool has_waited) noexcept;
    int64_t note_wait(const Question &question) noexcept;
    void conclude(Outcome outcome) noexcept;
    void roll_back() noexcept;
    bool find_true_cost(AppliedLimit *applied) noexcept;
    void abandon_question(ngx_uint_t status) noexcept;
    bool is_unsettled() const noexcept;
    void end_if_sent() noexcept;

    static void detach(void *data) noexcept;

    ngx_http_request_t *r_;
    RequestId id_;
    AppliedLimits limits_;
    Report report_;
    Outcome outcome_;

    /* Indexes of the first limit of the location that the request is in now, of
     * the first one of which it is open whether it counts, of the first one of
     * the location that has refused the request, if one has, and of the first
     * one that has not been looked at for settling. */
    size_t first_here_;
    size_t first_open_;
    size_t first_refused_;
    size_t first_unsettled_;

    /* The question that is under way; nullptr: there is none. */
    PendingQuestion *pending_;
    Question question_;

    bool is_answered_;

    /* The status of the answer; 0: there is none yet. */
    ngx_uint_t answered_with_;

    /* The request is in its post_action. */
    bool is_after_answer_;

    int64_t spent_us_;

    /* Looks whether the answer has been sent; nullptr: no costs are settled. */
    Wakeup *after_sending_;
};

/* The status that the request has been, or would be, answered with. */
ngx_uint_t status_of(ngx_http_request_t *r) noexcept;

}  // namespace sl
