#include "sl_check.h"

#include <time.h>

#include <new>

#include "sl_random.h"

namespace sl {

namespace {

int64_t monotonic_us()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);

    return int64_t{now.tv_sec} * 1000000 + now.tv_nsec / 1000;
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

    if (ngx_array_init(&check->zones_, r->main->pool, 2, sizeof(Zone *))
        != NGX_OK) {
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
      shown_(), asked_(), asked_count_(0), zones_(), started_us_(0),
      spent_us_(0), has_id_(false), id_()
{}

/* The request ends: its memory goes, the question may still be under way. */
void Check::detach(void *data) noexcept
{
    static_cast<Check *>(data)->abandon_question();
}

void Check::abandon_question() noexcept
{
    if (pending_ != nullptr) {
        pending_->abandon();
        pending_ = nullptr;
    }
}

void Check::start() noexcept
{
    Query query;
    query.count = 0;
    asked_count_ = 0;

    /* of a location that the request has been sent away from */
    abandon_question();

    if (!select_limits(&query)) {
        fail();
        return;
    }

    if (query.count == 0) {
        if (outcome_ == Outcome::kNone) {
            outcome_ = Outcome::kExempt;
        }

        return;
    }

    /* nobody may pass: there is nothing to count and nothing to ask */
    for (size_t i = 0; i < query.count; i++) {
        if (asked_[i]->max == 0) {
            outcome_ = Outcome::kRejected;
            shown_ = ShownLimit{asked_[i], true,
                                LimitState{false, 0, kWaitingIsNoUse},
                                ngx_current_msec};
            return;
        }
    }

    Answer answer;
    query.id = id();
    started_us_ = monotonic_us();
    pending_ = main_conf(r_)->store->ask(query, *this, &answer);

    if (pending_ == nullptr) {
        conclude(answer);
        return;
    }

    wait();
}

/* False: out of memory, or a variable could not be evaluated. */
bool Check::select_limits(Query *query) noexcept
{
    ngx_array_t *limits = location_conf(r_)->limits;
    auto *limit = static_cast<const Limit *>(limits->elts);

    for (ngx_uint_t i = 0; i < limits->nelts; i++) {
        if (!is_asked(limit[i].zone) && !add_limit(&limit[i], query)) {
            return false;
        }
    }

    return true;
}

bool Check::add_limit(const Limit *limit, Query *query) noexcept
{
    ngx_str_t key;
    auto *source = const_cast<ngx_http_complex_value_t *>(&limit->key);

    if (ngx_http_complex_value(r_, source, &key) != NGX_OK) {
        return false;
    }

    if (key.len == 0 && limit->fallback != nullptr
        && ngx_http_complex_value(r_, limit->fallback, &key) != NGX_OK)
    {
        return false;
    }

    if (key.len == 0) {
        return true;
    }

    auto **zone = static_cast<Zone **>(ngx_array_push(&zones_));

    if (zone == nullptr) {
        return false;
    }

    *zone = limit->zone;
    asked_[asked_count_++] = limit;
    query->limits[query->count++] =
        LimitQuery{view(limit->zone->name), view(key), limit->max,
                   static_cast<int64_t>(limit->zone->window) * 1000};

    return true;
}

bool Check::is_asked(const Zone *zone) const noexcept
{
    auto **asked = static_cast<Zone **>(zones_.elts);

    for (ngx_uint_t i = 0; i < zones_.nelts; i++) {
        if (asked[i] == zone) {
            return true;
        }
    }

    return false;
}

void Check::receive(const Answer &answer) noexcept
{
    bool waiting = is_waiting();

    pending_ = nullptr;
    conclude(answer);

    if (waiting) {
        answered_ = true;
        resume();
    }
}

void Check::conclude(const Answer &answer) noexcept
{
    spent_us_ += monotonic_us() - started_us_;

    if (!answer.known) {
        fail();
        return;
    }

    int64_t maxima[kMaxLimits];

    for (size_t i = 0; i < asked_count_; i++) {
        maxima[i] = asked_[i]->max;
    }

    Decision decision = decide(answer.states, maxima, asked_count_);

    show(asked_[decision.shown], answer.states[decision.shown],
         !decision.admitted);

    outcome_ = decision.admitted ? Outcome::kPassed : Outcome::kRejected;
}

/* After a redirect there may be one to show already: the tighter one stays. */
void Check::show(const Limit *limit, const LimitState &state,
                 bool refused) noexcept
{
    if (refused || !shown_.known
        || remaining(limit->max, state.used)
               < remaining(shown_.limit->max, shown_.state.used))
    {
        shown_ = ShownLimit{limit, true, state, ngx_current_msec};
    }
}

void Check::fail() noexcept
{
    outcome_ = location_conf(r_)->on_error == kPass ? Outcome::kFailedOpen
                                                    : Outcome::kFailedClosed;

    if (shown_.limit == nullptr && asked_count_ > 0) {
        shown_ = ShownLimit{asked_[0], false, LimitState{}, ngx_current_msec};
    }
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

std::string_view Check::id() noexcept
{
    if (!has_id_) {
        uint8_t random[kUuidRandomBytes];
        random_bytes(random, sizeof(random));

        ngx_time_t *now = ngx_timeofday();
        uuid_v7(static_cast<uint64_t>(now->sec) * 1000 + now->msec, random,
                id_);
        has_id_ = true;
    }

    return {id_, kUuidSize};
}

}  // namespace sl
