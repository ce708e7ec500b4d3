#include "request/sl_check.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/sl_clock.h"
#include "base/sl_random.h"
#include "request/sl_limit_values.h"
#include "request/sl_recording.h"

namespace sl {

namespace {

constexpr std::string_view kDenyCache = "deny_cache";

/*
 * Of a zone that stands beside others somewhere, a refusal by another may take
 * back what it has counted, where a store does not decide about both together.
 */
size_t refusal_mark(const AppliedLimit &applied)
{
    const Zone &zone = *applied.limit->zone;

    return zone.has_company && zone.store->decides_together() == Together::kNone
               ? kNoMark
               : applied.refusal_mark;
}

LimitQuery to_query(const AppliedLimit &applied)
{
    const Limit &limit = *applied.limit;

    return LimitQuery{view(limit.zone->name),
                      view(applied.key),
                      static_cast<int64_t>(limit.zone->window) * 1000,
                      applied.verdict.max,
                      applied.cost,
                      limit.zone->buckets,
                      limit.counts_refused,
                      applied.verdict.dry_run,
                      limit.count_status != nullptr,
                      applied.verdict.state.place,
                      refusal_mark(applied)};
}

bool counts_with(const AppliedLimit &applied, ngx_uint_t status)
{
    const StatusList *list = applied.limit->count_status;

    return list != nullptr && list->contains(static_cast<unsigned>(status));
}

bool can_decide_together(const Store &store, const AppliedLimit &a,
                         const AppliedLimit &b)
{
    switch (store.decides_together()) {
    case Together::kAll:
        return true;

    case Together::kSameKey:
        return view(a.key) == view(b.key);

    case Together::kNone:
        break;
    }

    return &a == &b;
}

bool are_decided_together(const AppliedLimit &a, const AppliedLimit &b)
{
    const Store *store = a.limit->zone->store;

    return b.limit->zone->store == store && can_decide_together(*store, a, b);
}

}  // namespace

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
            check = static_cast<Check *>(c->data);
            check->enter_location();
            ngx_http_set_ctx(r->main, check, ngx_http_sliding_limit_module);
            return check;
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

    if (ngx_array_init(&check->applied_, r->main->pool, 2, sizeof(AppliedLimit))
        != NGX_OK)
    {
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
    : r_(r), pending_(nullptr), answered_(false), outcome_(Outcome::kNone),
      applied_(), first_here_(0), first_open_(0), exempt_(), recorded_(0),
      recorded_exempt_(0), question_(), question_size_(0), started_us_(0),
      spent_us_(0), has_id_(false), id_()
{}

/* The request ends: its memory goes, the question may still be under way. */
void Check::detach(void *data) noexcept
{
    static_cast<Check *>(data)->abandon_question();
}

void Check::abandon_question() noexcept
{
    if (pending_ == nullptr) {
        return;
    }

    bool keep = false;

    for (size_t i = 0; i < question_size_; i++) {
        keep = keep || counts_with(applied()[question_[i]], status_of(r_));
    }

    pending_->abandon(keep);
    pending_ = nullptr;
    main_conf(r_)->recorder->checks_in_flight()--;
}

void Check::add_limits(Phase phase) noexcept
{
    ngx_array_t *limits = location_conf(r_)->limits;
    auto *limit = static_cast<const Limit *>(limits->elts);

    ngx_uint_t before = applied_.nelts;

    /* of a location that the request has been sent away from */
    abandon_question();

    for (ngx_uint_t i = 0; i < limits->nelts; i++) {
        if (limit[i].phase == phase && !is_applied(limit[i].zone)
            && !add_limit(&limit[i]))
        {
            question_size_ = 0;
            fail();
            return;
        }
    }

    for (ngx_uint_t i = 0; i < limits->nelts; i++) {
        if (limit[i].phase == phase && !is_applied(limit[i].zone)) {
            note_exempt(limit[i].zone);
        }
    }

    if (applied_.nelts == before) {
        raise_outcome(Outcome::kExempt);
    }
}

/* For the metrics: without memory they do without it. */
void Check::note_exempt(const Zone *zone) noexcept
{
    if (exempt_.elts == nullptr
        && ngx_array_init(&exempt_, r_->pool, 1, sizeof(Zone *)) != NGX_OK)
    {
        return;
    }

    auto **noted = static_cast<const Zone **>(exempt_.elts);

    if (std::find(noted, noted + exempt_.nelts, zone) != noted + exempt_.nelts)
    {
        return;
    }

    auto **added = static_cast<const Zone **>(ngx_array_push(&exempt_));

    if (added != nullptr) {
        *added = zone;
    }
}

/*
 * If it applies. False: out of memory, or a variable could not be evaluated.
 */
bool Check::add_limit(const Limit *limit) noexcept
{
    Terms terms;

    if (!read_terms(r_, *limit, &terms)) {
        return false;
    }

    if (!terms.apply) {
        return true;
    }

    auto *added = static_cast<AppliedLimit *>(ngx_array_push(&applied_));

    if (added == nullptr) {
        return false;
    }

    *added = AppliedLimit{};

    added->limit = limit;
    added->decided_by = "none";
    added->key = terms.key;
    added->cost = terms.cost;
    added->at = ngx_current_msec;
    added->verdict.max = terms.max;
    added->verdict.dry_run = limit->dry_run || location_conf(r_)->dry_run;
    added->refusal_mark =
        added->verdict.dry_run || location_conf(r_)->deny_cache == 0
            ? kNoMark
            : limit->refusal_mark;

    if (terms.max == 0 || terms.cost > terms.max) {
        /* whatever was counted: nobody has to be asked */
        added->is_asked = true;
        added->verdict.known = true;
        added->verdict.state = LimitState{false, false, kUnknownUse, kNoWait};
        judge(*added);
    }

    return true;
}

bool Check::is_applied(const Zone *zone) const noexcept
{
    for (size_t i = 0; i < limit_count(); i++) {
        if (limits()[i].limit->zone == zone) {
            return true;
        }
    }

    return false;
}

bool Check::ask_next() noexcept
{
    const AppliedLimit *first = nullptr;

    question_size_ = 0;

    for (ngx_uint_t i = 0; i < applied_.nelts && question_size_ < kMaxLimits;
         i++) {
        const AppliedLimit &next = applied()[i];

        if (!next.is_asked
            && (first == nullptr || are_decided_together(*first, next))) {
            first = first != nullptr ? first : &next;
            question_[question_size_++] = i;
        }
    }

    if (first == nullptr) {
        return false;
    }

    Store *store = first->limit->zone->store;

    Answer answer = Answer::none(StoreError::kDown);

    bool failed_before = has_failed(store);

    for (size_t i = 0; i < question_size_; i++) {
        applied()[question_[i]].is_asked = true;
        applied()[question_[i]].asked_with = question_[0];
    }

    started_us_ = monotonic_us();

    Query query = question();

    if (recall_refusals(query, location_conf(r_)->deny_cache * 1000)) {
        return true;
    }

    /* who has waited for a store in vain does not wait for it again */
    if (!failed_before) {
        query.id = store->uses_ids() ? id() : std::string_view();
        pending_ = store->ask(query, *this, &answer);
    }

    if (pending_ == nullptr) {
        conclude(answer, false);
    } else {
        main_conf(r_)->recorder->checks_in_flight()++;
        wait();
    }

    return true;
}

Query Check::question() noexcept
{
    Query query;

    query.first_key = view(applied()[question_[0]].key);
    query.count = question_size_;

    for (size_t i = 0; i < question_size_; i++) {
        query.limits[i] = to_query(applied()[question_[i]]);
    }

    return query;
}

/* It has been asked by this request, and has not answered. */
bool Check::has_failed(const Store *store) const noexcept
{
    for (size_t i = 0; i < limit_count(); i++) {
        if (limits()[i].has_failed && limits()[i].limit->zone->store == store) {
            return true;
        }
    }

    return false;
}

/* Whether it is known without asking that one of them refuses. */
bool Check::recall_refusals(const Query &query, int64_t max_age_us) noexcept
{
    Recollection known;
    bool is_refused = main_conf(r_)->deny_cache->recall(query, started_us_,
                                                        max_age_us, &known);

    for (size_t i = 0; i < question_size_; i++) {
        AppliedLimit &asked = applied()[question_[i]];

        asked.is_rechecked = known.recalled[i] == Recalled::kAskAgain;

        if (is_refused && known.recalled[i] == Recalled::kRefusal) {
            note(&asked, known.states[i], kDenyCache);
            judge(asked);
        }
    }

    return is_refused;
}

void Check::receive(const Answer &answer) noexcept
{
    bool waiting = is_waiting();

    pending_ = nullptr;
    main_conf(r_)->recorder->checks_in_flight()--;

    if (!waiting || !is_to_be_divided(answer)) {
        conclude(answer, true);
    } else {
        divide_question();
    }

    if (waiting) {
        answered_ = true;
        resume();
    }
}

/* The store has found out that it cannot decide about all of them together. */
bool Check::is_to_be_divided(const Answer &answer) noexcept
{
    return !answer.known && answer.error == StoreError::kScript
           && question_size_ > 1
           && !are_decided_together(applied()[question_[0]],
                                    applied()[question_[1]]);
}

/* It has counted nothing: ask_next() asks again, in several questions. */
void Check::divide_question() noexcept
{
    spent_us_ += monotonic_us() - started_us_;

    for (size_t i = 0; i < question_size_; i++) {
        applied()[question_[i]].is_asked = false;
    }
}

void Check::conclude(const Answer &answer, bool has_waited) noexcept
{
    Store *store = applied()[question_[0]].limit->zone->store;
    int64_t spent_us = monotonic_us() - started_us_;

    spent_us_ += spent_us;

    if (answer.known || has_waited) {
        store->metrics().checks.add(spent_us);
    }

    if (answer.known) {
        accept(answer, store);
    } else {
        add(store->metrics().errors[static_cast<size_t>(answer.error)]);
        do_without_store(answer.error);
    }
}

/*
 * The store has failed. Of those whom it refused before, it is known until
 * when: that nobody could ask it again by now makes no difference.
 */
void Check::do_without_store(StoreError why) noexcept
{
    MemoryStore *memory = main_conf(r_)->memory;
    Answer answer = Answer::none(StoreError::kDown);

    for (size_t i = 0; i < question_size_; i++) {
        applied()[question_[i]].has_failed = true;
        applied()[question_[i]].is_uncertain =
            why == StoreError::kTimeout || why == StoreError::kConnection;
    }

    Query query = question();

    if (recall_refusals(query, kAnyAge)) {
        return;
    }

    if (location_conf(r_)->on_error == kLocal
        && applied()[question_[0]].limit->zone->store != memory)
    {
        memory->decide(query, &answer);

        if (!answer.known) {
            add(memory->metrics()
                    .errors[static_cast<size_t>(StoreError::kMemory)]);
        }
    }

    if (answer.known) {
        accept(answer, memory);
    } else {
        fail();
    }
}

void Check::accept(const Answer &answer, Store *from) noexcept
{
    for (size_t i = 0; i < question_size_; i++) {
        AppliedLimit &asked = applied()[question_[i]];

        note(&asked, answer.states[i], from->kind());
        asked.answered_by = from;
        asked.counted_at_us = answer.time_us;

        /* memory needs no reminder */
        if (from != main_conf(r_)->memory) {
            remember(asked);
        }
    }

    for (size_t i = 0; i < question_size_; i++) {
        judge(applied()[question_[i]]);
    }
}

void Check::remember(const AppliedLimit &answered) noexcept
{
    DenyCache &deny_cache = *main_conf(r_)->deny_cache;

    if (!answered.verdict.state.admits) {
        deny_cache.remember(to_query(answered), answered.verdict.state,
                            started_us_);
    } else if (answered.is_rechecked) {
        deny_cache.forget(to_query(answered));
    }
}

void Check::note(AppliedLimit *applied, const LimitState &state,
                 std::string_view by) noexcept
{
    applied->verdict.known = true;
    applied->verdict.state = state;
    applied->stored = state;
    applied->decided_by = by;
    applied->at = ngx_current_msec;
}

/* What is known of the limit now, and what it means for the request. */
void Check::judge(const AppliedLimit &applied) noexcept
{
    if (is_refusal(applied.verdict)) {
        raise_outcome(Outcome::kRejected);

    } else if (is_dry_refusal(applied.verdict)) {
        ngx_log_error(location_conf(r_)->log_level, r_->connection->log, 0,
                      "sliding_limit: would be refused by zone \"%V\", max %L "
                      "in %M ms, but for its dry run",
                      &applied.limit->zone->name, applied.verdict.max,
                      applied.limit->zone->window);
        raise_outcome(Outcome::kRejectedDryRun);

    } else {
        raise_outcome(Outcome::kPassed);
    }
}

/* There is no answer. Dry runs refuse nobody for want of one either. */
void Check::fail() noexcept
{
    bool is_dry_run = question_size_ > 0;

    for (size_t i = 0; i < question_size_; i++) {
        is_dry_run = is_dry_run && applied()[question_[i]].verdict.dry_run;
    }

    bool pass = location_conf(r_)->on_error != kDeny || is_dry_run;

    raise_outcome(pass ? Outcome::kFailedOpen : Outcome::kFailedClosed);
}

void Check::raise_outcome(Outcome outcome) noexcept
{
    bool was_refused = is_refused();

    outcome_ = ngx_max(outcome_, outcome);

    if (is_refused() && !was_refused) {
        take_back(first_here_, [](const AppliedLimit &) { return true; });
        take_back_uncertain(first_here_);
        first_open_ = applied_.nelts;
    }
}

/*
 * After a redirect. Somebody may have worked for the request where it was (has
 * checked a password, and this is the error page): to be refused here must not
 * undo what was counted there. Otherwise whoever has used up the limit of the
 * page could go on guessing.
 */
void Check::enter_location() noexcept
{
    first_here_ = applied_.nelts;
}

bool Check::foresee(ngx_uint_t status) noexcept
{
    bool is_other = false;

    for (ngx_uint_t i = first_open_; i < applied_.nelts; i++) {
        AppliedLimit &open = applied()[i];

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

bool Check::settle(ngx_uint_t status) noexcept
{
    bool is_other = foresee(status);

    take_back(first_open_, [](const AppliedLimit &applied) {
        return !applied.verdict.state.is_counted;
    });
    first_open_ = applied_.nelts;

    record();

    return is_other;
}

/* Every zone that the request has met, once. */
void Check::record() noexcept
{
    const MainConf &mcf = *main_conf(r_);

    for (; recorded_ < limit_count(); recorded_++) {
        const AppliedLimit &applied = limits()[recorded_];
        const Verdict &verdict = applied.verdict;
        ZoneResult result = result_of(applied);

        mcf.recorder->record(
            r_, *applied.limit->zone,
            ZoneEvent{result,
                      result == ZoneResult::kPassed && is_near_limit(verdict),
                      applied.decided_by == kDenyCache,
                      applied.answered_by == mcf.memory
                          && applied.limit->zone->store != mcf.memory,
                      view(applied.key)});
    }

    auto **exempt = static_cast<const Zone **>(exempt_.elts);

    for (; recorded_exempt_ < exempt_.nelts; recorded_exempt_++) {
        const Zone *zone = exempt[recorded_exempt_];

        /* unless it has met it elsewhere, after a redirect */
        if (!is_applied(zone)) {
            mcf.recorder->record(r_, *zone,
                                 ZoneEvent{ZoneResult::kExempt, false, false,
                                           false, std::string_view()});
        }
    }
}

ZoneResult Check::result_of(const AppliedLimit &applied) const noexcept
{
    if (is_refusal(applied.verdict)) {
        return ZoneResult::kRejected;
    }

    if (is_dry_refusal(applied.verdict)) {
        return ZoneResult::kRejectedDryRun;
    }

    bool has_failed = applied.has_failed && !applied.verdict.known;

    if (has_failed && outcome_ == Outcome::kFailedClosed) {
        return ZoneResult::kFailedClosed;
    }

    if (is_refused()) {
        return ZoneResult::kRejectedElsewhere;
    }

    if (has_failed) {
        return ZoneResult::kFailedOpen;
    }

    return applied.verdict.known ? ZoneResult::kPassed : ZoneResult::kAborted;
}

/* One call for all that one question has counted. */
template <typename Predicate>
void Check::take_back(ngx_uint_t first_index, Predicate is_to_go) noexcept
{
    for (ngx_uint_t i = first_index; i < applied_.nelts; i++) {
        const AppliedLimit &first = applied()[i];

        if (!first.stored.is_counted || !is_to_go(first)) {
            continue;
        }

        Query query = take_of(i, *first.answered_by, [&](AppliedLimit *other) {
            bool goes = other->stored.is_counted && is_to_go(*other);

            if (goes) {
                other->verdict.state = other->stored =
                    uncounted(other->stored, other->cost);
            }

            return goes;
        });

        first.answered_by->take_back(query, first.counted_at_us);
    }
}

/*
 * A store that did not answer in time may yet count it: what takes that back
 * follows on the same way, and is executed after it. Unless the request has
 * passed without an answer: then it counts, late or not.
 */
void Check::take_back_uncertain(ngx_uint_t first_index) noexcept
{
    for (ngx_uint_t i = first_index; i < applied_.nelts; i++) {
        Store *store = applied()[i].limit->zone->store;

        if (applied()[i].is_uncertain) {
            store->take_back(take_of(i, *store,
                                     [](AppliedLimit *other) {
                                         return std::exchange(
                                             other->is_uncertain, false);
                                     }),
                             Store::kUncertain);
        }
    }
}

/* Of the limits that were asked about together with this one those that are
 * taken. */
template <typename Take>
Query Check::take_of(ngx_uint_t index, const Store &from, Take take) noexcept
{
    ngx_uint_t question = applied()[index].asked_with;
    Query query;

    query.count = 0;
    query.id = from.uses_ids() ? id() : std::string_view();
    query.first_key = view(applied()[question].key);

    for (ngx_uint_t i = index; i < applied_.nelts; i++) {
        AppliedLimit &other = applied()[i];

        if (other.asked_with == question && take(&other)) {
            query.limits[query.count++] = to_query(other);
        }
    }

    return query;
}

const AppliedLimit *Check::shown() const noexcept
{
    const AppliedLimit *shown = nullptr;

    for (size_t i = 0; i < limit_count(); i++) {
        if (shown == nullptr || outweighs(limits()[i].verdict, shown->verdict))
        {
            shown = &limits()[i];
        }
    }

    return shown;
}

bool Check::take_answer() noexcept
{
    bool answered = answered_;

    answered_ = false;

    return answered;
}

/*
 * Nothing but the answer makes the request go on. As limit_req does while it
 * delays, a client that goes away is noticed.
 */
void Check::wait() noexcept
{
    ngx_event_t *rev = r_->connection->read;

    r_->write_event_handler = stay;

    if (rev->ready) {
        ngx_post_event(rev, &ngx_posted_events);

    } else if (ngx_handle_read_event(rev, 0) != NGX_OK) {
        /* the check goes on; only an early end would go unnoticed */
        return;
    }

    r_->read_event_handler = ngx_http_test_reading;
}

void Check::stay(ngx_http_request_t *) noexcept {}

/*
 * A client that goes away can send the request elsewhere (post_action) while
 * the question is under way: then it does not wait for the answer any more.
 */
bool Check::is_waiting() const noexcept
{
    return pending_ != nullptr && r_->write_event_handler == stay;
}

/* Runs inside hiredis: the request itself goes on from the event loop. */
void Check::resume() noexcept
{
    r_->read_event_handler = ngx_http_block_reading;
    r_->write_event_handler = ngx_http_core_run_phases;

    ngx_post_event(r_->connection->write, &ngx_posted_events);
}

ngx_uint_t status_of(ngx_http_request_t *r) noexcept
{
    return r->err_status ? r->err_status : r->headers_out.status;
}

std::string_view Check::id() noexcept
{
    if (!has_id_) {
        uint8_t random[kUuidRandomBytes];
        random_bytes(random, sizeof(random));

        uuid_v7(wall_clock_ms(), random, id_);
        has_id_ = true;
    }

    return {id_, kUuidSize};
}

}  // namespace sl
