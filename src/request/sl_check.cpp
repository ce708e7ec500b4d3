#include "request/sl_check.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/sl_clock.h"
#include "request/sl_limit_values.h"
#include "request/sl_recording.h"
#include "request/sl_settling.h"
#include "request/sl_waiting.h"

namespace sl {

/*
 * An internal redirect, or a filter that ends the request, clears its module
 * contexts but not its pool: there the check is found again by its cleanup.
 */
Check *Check::find(ngx_http_request_t *r) noexcept
{
    auto *check = static_cast<Check *>(
        ngx_http_get_module_ctx(r->main, ngx_http_sliding_limit_module));

    if (check != nullptr || !(r->main->internal || r->main->filter_finalize)) {
        return check;
    }

    for (ngx_pool_cleanup_t *c = r->main->pool->cleanup; c; c = c->next) {
        if (c->handler == detach) {
            return static_cast<Check *>(c->data);
        }
    }

    return nullptr;
}

Check *Check::find_or_create(ngx_http_request_t *r) noexcept
{
    Check *check = find(r);

    if (check != nullptr) {
        return check;
    }

    ngx_pool_cleanup_t *at_pool_end = ngx_pool_cleanup_add(r->main->pool, 0);
    ngx_http_cleanup_t *at_request_end = ngx_http_cleanup_add(r->main, 0);
    void *memory = ngx_palloc(r->main->pool, sizeof(Check));

    if (at_pool_end == nullptr || at_request_end == nullptr
        || memory == nullptr) {
        return nullptr;
    }

    check = new (memory) Check(r->main);

    if (!check->limits_.init(r->main->pool)) {
        return nullptr;
    }

    /* a terminated request's pool may stay for a while: both ends count */
    at_pool_end->handler = detach;
    at_pool_end->data = check;
    at_request_end->handler = detach;
    at_request_end->data = check;

    ngx_http_set_ctx(r->main, check, ngx_http_sliding_limit_module);

    return check;
}

Check::Check(ngx_http_request_t *r) noexcept
    : r_(r), outcome_(Outcome::kNone), first_here_(0), first_open_(0),
      first_refused_(0), first_unsettled_(0), pending_(nullptr), question_(),
      is_answered_(false), answered_with_(0), is_after_answer_(r->post_action),
      spent_us_(0), after_sending_(nullptr)
{}

/* The request ends: its memory goes, the question may still be under way. */
void Check::detach(void *data) noexcept
{
    auto *check = static_cast<Check *>(data);

    check->abandon_question(status_of(check->r_));

    if (check->after_sending_ != nullptr) {
        check->after_sending_->cancel();
    }
}

void Check::abandon_question(ngx_uint_t status) noexcept
{
    if (pending_ == nullptr) {
        return;
    }

    bool keep = std::any_of(question_.begin(), question_.end(),
                            [status](const AppliedLimit *asked) {
                                return counts_with(*asked, status);
                            });

    pending_->abandon(keep);
    pending_ = nullptr;
    main_conf(r_)->recorder->checks_in_flight()--;
}

/*
 * A redirect clears the module's context. So as long as the check stands there,
 * it has entered this location before.
 *
 * Somebody may have worked for the request where it was (has checked a
 * password, and this is the error page): to be refused here must not undo what
 * was counted there. Otherwise whoever has used up the limit of the page could
 * go on guessing.
 */
void Check::enter_location() noexcept
{
    if (ngx_http_get_module_ctx(r_, ngx_http_sliding_limit_module) != this) {
        ngx_http_set_ctx(r_, this, ngx_http_sliding_limit_module);
        first_here_ = limits_.size();
    }
}

void Check::add_limits(Phase phase) noexcept
{
    size_t before = limits_.size();

    /* the request may have been sent away from where it asked */
    abandon_question(status_of(r_));

    Outcome outcome = evaluate_limits(phase);

    /* some are known to refuse without asking anybody */
    for (size_t i = before; i < limits_.size(); i++) {
        outcome = outweighing(outcome, judge(r_, limits_[i]));
    }

    conclude(outcome);
}

/* Adds those limits that apply. kNone, unless there are none or one of them
 * could not be evaluated. */
Outcome Check::evaluate_limits(Phase phase) noexcept
{
    const LocationConf &lcf = *location_conf(r_);
    auto limits = elements<const Limit>(*lcf.limits);
    size_t before = limits_.size();

    for (const Limit &limit : limits) {
        if (limit.phase == phase && !limits_.have_zone(*limit.zone)
            && !add_limit(limit))
        {
            return lcf.on_error == kDeny ? Outcome::kFailedClosed
                                         : Outcome::kFailedOpen;
        }
    }

    for (const Limit &limit : limits) {
        if (limit.phase == phase && !limits_.have_zone(*limit.zone)) {
            report_.note_exempt(r_, limit.zone);
        }
    }

    return limits_.size() == before ? Outcome::kExempt : Outcome::kNone;
}

/* Adds the limit if it applies. False: out of memory, or a variable could not
 * be evaluated. */
bool Check::add_limit(const Limit &limit) noexcept
{
    const LocationConf &lcf = *location_conf(r_);
    LimitValues values;

    if (!evaluate_limit(r_, limit, &values)) {
        return false;
    }

    if (!values.apply) {
        return true;
    }

    AppliedLimit *added = limits_.add();

    if (added == nullptr) {
        return false;
    }

    added->limit = &limit;
    added->decided_by = "none";
    added->key = values.key;
    added->max = values.max;
    added->cost = values.cost;
    added->at = ngx_current_msec;
    added->verdict.max = values.max;
    added->verdict.dry_run = limit.dry_run || lcf.dry_run;
    added->refusal_mark = added->verdict.dry_run || lcf.deny_cache == 0
                              ? kNoMark
                              : limit.refusal_mark;

    if (values.max == 0 || values.cost > values.max) {
        /* nobody has to be asked, whatever was counted */
        added->is_asked = true;
        added->verdict.known = true;
        added->verdict.state = LimitState{false, false, kUnknownUse, kNoWait};
    }

    return true;
}

bool Check::ask_next() noexcept
{
    Question question = next_question(&limits_);

    if (question.count == 0) {
        return false;
    }

    Query query = to_query(question);

    if (recall_refusals(r_, question, query,
                        location_conf(r_)->deny_cache * 1000)) {
        conclude(judge(r_, question));
        return true;
    }

    Store &store = *question.store;
    Answer answer = Answer::none(StoreError::kDown);
    PendingQuestion *pending = nullptr;

    /* who has waited for a store in vain does not wait for it again */
    if (!limits_.have_failed(store)) {
        query.id = store.uses_ids() ? id() : std::string_view();

        if (spent_us_ > 0) {
            query.waited_us = limits_.waited_for(store);
        }

        pending = store.ask(query, *this, &answer);
    }

    if (pending != nullptr) {
        wait_for(pending, question);
    } else {
        conclude(finish(question, answer, false));
    }

    return true;
}

void Check::wait_for(PendingQuestion *pending,
                     const Question &question) noexcept
{
    pending_ = pending;
    question_ = question;
    main_conf(r_)->recorder->checks_in_flight()++;
    hold(r_);
}

bool Check::is_waiting() const noexcept
{
    return pending_ != nullptr && is_held(r_);
}

void Check::receive(const Answer &answer) noexcept
{
    bool was_waiting = is_waiting();

    pending_ = nullptr;
    main_conf(r_)->recorder->checks_in_flight()--;

    if (was_waiting && is_to_be_divided(question_, answer)) {
        note_wait(question_);
        divide(question_);
    } else {
        conclude(finish(question_, answer, true));
    }

    if (was_waiting) {
        is_answered_ = true;
        resume(r_);
    }
}

bool Check::take_answer() noexcept
{
    return std::exchange(is_answered_, false);
}

/* There is an answer to the question, or there will be none. */
Outcome Check::finish(const Question &question, const Answer &answer,
                      bool has_waited) noexcept
{
    int64_t spent_us = note_wait(question);

    if (answer.known || has_waited) {
        question.store->metrics().checks.add(spent_us);
    }

    return interpret(r_, question, answer);
}

/* Returns how long the question took. */
int64_t Check::note_wait(const Question &question) noexcept
{
    int64_t spent_us = monotonic_us() - question.asked_us;

    spent_us_ += spent_us;
    question.limits[0]->waited_us += spent_us;

    return spent_us;
}

/* The last step of each call that can refuse the request. */
void Check::conclude(Outcome outcome) noexcept
{
    outcome_ = outweighing(outcome_, outcome);

    /* a client that is banned and over its limit elsewhere is told what it is
     * shown: that which lasts longer */
    if (is_rejection(outcome_)) {
        outcome_ = outcome_of(shown()->verdict);
    }

    if (is_refused()) {
        roll_back();
    }
}

/*
 * What was counted of a refused request in this location is not to count. If a
 * store counts the request late, it may refuse others because of it until the
 * request is taken back: such refusals are not to be remembered. Those that are
 * remembered already are kept: this may be an outage, through which they hold.
 * (From a bucket it is taken only when the late answer says in which it is:
 * refusals that are asked for before that may be remembered.)
 */
void Check::roll_back() noexcept
{
    for (size_t i = first_here_; i < limits_.size(); i++) {
        if (limits_[i].is_uncertain) {
            main_conf(r_)->deny_cache->ignore_what_is_asked(
                limits_[i].limit->zone->refusal_mark);
        }
    }

    take_back_counted(
        &limits_, first_here_, [](const AppliedLimit &) { return true; }, &id_);
    take_back_uncertain(&limits_, first_here_, &id_);

    first_refused_ = first_here_;
    first_open_ = limits_.size();
}

bool Check::foresee(ngx_uint_t status) noexcept
{
    bool is_other = false;

    for (size_t i = first_open_; i < limits_.size(); i++) {
        AppliedLimit &open = limits_[i];

        if (!open.stored.is_counted || open.limit->count_status == nullptr) {
            continue;
        }

        LimitState &shown = open.verdict.state;
        bool was_counted = shown.is_counted;

        shown = counts_with(open, status) ? open.stored
                                          : uncounted(open.stored, open.cost);
        is_other = is_other || shown.is_counted != was_counted;
    }

    return is_other;
}

bool Check::answer_with(ngx_uint_t status) noexcept
{
    bool is_other = foresee(status);

    answered_with_ = status;
    take_back_counted(
        &limits_, first_open_,
        [](const AppliedLimit &applied) {
            return !applied.verdict.state.is_counted;
        },
        &id_);
    first_open_ = limits_.size();

    report_.tell(r_, limits_, outcome_);

    return is_other;
}

/* Nothing is settled twice, however often the end is told. */
void Check::end(ngx_uint_t status) noexcept
{
    answer_with(status);

    bool is_due = false;

    for (; first_unsettled_ < limits_.size(); first_unsettled_++) {
        AppliedLimit &applied = limits_[first_unsettled_];
        bool is_refused_there =
            is_refused() && first_unsettled_ >= first_refused_;

        if (applied.limit->settle != nullptr
            && is_to_be_settled(applied, status, is_refused_there))
        {
            is_due = find_true_cost(&applied) || is_due;
        }
    }

    if (is_due) {
        settle_costs(&limits_, &id_);
    }
}

/* A request that is aborted is given its status only when it ends. */
void Check::enter_post_action() noexcept
{
    if (std::exchange(is_after_answer_, true)) {
        return;
    }

    ngx_uint_t status = answered_with_;

    if (status == 0) {
        status = r_->connection->timedout ? NGX_HTTP_REQUEST_TIME_OUT
                                          : NGX_HTTP_CLIENT_CLOSED_REQUEST;
    }

    abandon_question(status);
    end(status);
}

bool Check::is_unsettled() const noexcept
{
    auto limits = limits_.all();

    return std::any_of(limits.begin() + first_unsettled_, limits.end(),
                       [](const AppliedLimit &applied) {
                           return applied.limit->settle != nullptr;
                       });
}

/* Without memory for the event, costs are settled when nginx logs the request.
 */
void Check::sending() noexcept
{
    if (!main_conf(r_)->settles || !is_unsettled()) {
        return;
    }

    if (after_sending_ == nullptr) {
        void *memory = ngx_palloc(r_->pool, sizeof(Wakeup));

        if (memory == nullptr) {
            return;
        }

        after_sending_ = new (memory) Wakeup(
            Wakeup::calling<&Check::end_if_sent>(this, Wakeup::kCancelable));
    }

    after_sending_->at_end_of_turn();
}

/*
 * A request is complete when nothing of its answer is left to be sent. Where
 * the answer is a header alone, its upstream may go on, to fill a cache, and
 * nothing passes the filters when that ends. A post_action has begun already,
 * and may have ended before the access phase, where it would have been noticed.
 */
void Check::end_if_sent() noexcept
{
    constexpr ngx_msec_t kLookAgainMs = 1000;

    if (r_->post_action) {
        enter_post_action();
    } else if (r_->request_complete) {
        end(status_of(r_));
    } else if (r_->header_only) {
        after_sending_->after(kLookAgainMs);
    }
}

/* Whether that is not what was reserved. If it is not known, that stands. */
bool Check::find_true_cost(AppliedLimit *applied) noexcept
{
    Settlement settlement{applied->cost, applied->cost, false};

    settlement.is_known =
        evaluate_true_cost(r_, *applied->limit, &settlement.cost);

    /* What a log enters now leaves it all at once, so more than max does not
     * make the wait longer. An operator's max may be the larger one, but no
     * call enters more units than the configuration allows. */
    if (applied->limit->zone->is_log()) {
        int64_t max = std::max(applied->max, applied->verdict.max);
        int64_t most = std::min(max, kMostSettledMax);

        settlement.cost = std::min(settlement.cost, applied->cost + most);
    }

    main_conf(r_)->recorder->record(*applied->limit->zone, settlement);

    applied->true_cost = settlement.cost;
    applied->is_unsettled = applied->true_cost != applied->cost;

    return applied->is_unsettled;
}

ngx_uint_t status_of(ngx_http_request_t *r) noexcept
{
    return r->err_status ? r->err_status : r->headers_out.status;
}

}  // namespace sl
