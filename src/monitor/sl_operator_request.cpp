#include "monitor/sl_operator_request.h"

#include <new>

#include "monitor/pure/sl_change_body.h"
#include "monitor/sl_client_json.h"
#include "monitor/sl_response.h"
#include "request/sl_waiting.h"

namespace sl {

namespace {

/* What a store needs to know of the client's limit. */
LimitQuery to_query(const OperatorQuestion &question)
{
    const Zone &zone = *question.zone;
    LimitQuery query{};

    query.zone = view(zone.name);
    query.key = question.key;
    query.window_us = static_cast<int64_t>(zone.window) * 1000;
    query.max = 1;
    query.algorithm = zone.algorithm;
    query.buckets = zone.buckets;
    query.counts_refused = zone.counts_refused;

    return query;
}

/* Whether the store may have done what it was told, and could not say so. */
bool is_uncertain(StoreError error)
{
    return error == StoreError::kTimeout || error == StoreError::kConnection
           || error == StoreError::kNonsense;
}

Complaint too_large()
{
    return Complaint::of("the body is too large, must be at most 4096 bytes");
}

}  // namespace

OperatorRequest::OperatorRequest(ngx_http_request_t *r,
                                 const OperatorQuestion &question) noexcept
    : r_(r), question_(question), body_(nullptr), pending_(nullptr),
      status_(NGX_HTTP_OK), text_(r->pool),
      wakeup_(Wakeup::calling<&OperatorRequest::wake>(this, Wakeup::kNeeded))
{}

OperatorRequest *OperatorRequest::create(
    ngx_http_request_t *r, const OperatorQuestion &question) noexcept
{
    ngx_http_cleanup_t *at_end = ngx_http_cleanup_add(r, 0);
    void *memory = ngx_palloc(r->pool, sizeof(OperatorRequest));

    if (at_end == nullptr || memory == nullptr) {
        return nullptr;
    }

    auto *request = new (memory) OperatorRequest(r, question);

    at_end->handler = detach;
    at_end->data = request;

    return request;
}

/* The module's context belongs to the request's check. */
OperatorRequest *OperatorRequest::find(ngx_http_request_t *r) noexcept
{
    for (ngx_http_cleanup_t *c = r->main->cleanup; c != nullptr; c = c->next) {
        auto *request = static_cast<OperatorRequest *>(c->data);

        if (c->handler == detach && request->r_ == r) {
            return request;
        }
    }

    return nullptr;
}

/* The request ends: its memory goes, the question may still be under way. */
void OperatorRequest::detach(void *data) noexcept
{
    auto *request = static_cast<OperatorRequest *>(data);

    request->wakeup_.cancel();

    if (request->pending_ == nullptr) {
        return;
    }

    request->pending_->abandon(false);
    request->pending_ = nullptr;

    if (request->is_change()) {
        report_uncertain_change(request->r_, request->change(),
                                ", but did not wait for the answer");
    }
}

bool OperatorRequest::is_change() const noexcept
{
    return question_.intervention.act != Act::kLook;
}

Change OperatorRequest::change() const noexcept
{
    return {*question_.zone, question_.key, question_.intervention};
}

ngx_int_t OperatorRequest::begin(ngx_http_request_t *r,
                                 const OperatorQuestion &question) noexcept
{
    if (r->method == NGX_HTTP_PUT
        && r->headers_in.content_length_n
               > static_cast<off_t>(SmallBody::kLargest))
    {
        return send_complaint(r, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                              too_large());
    }

    OperatorRequest *request = create(r, question);

    if (request == nullptr) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (r->method == NGX_HTTP_PUT) {
        return request->begin_body();
    }

    ngx_int_t rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    r->main->count++;
    request->ask();

    return NGX_DONE;
}

ngx_int_t OperatorRequest::begin_body() noexcept
{
    void *memory = ngx_palloc(r_->pool, sizeof(SmallBody));

    if (memory == nullptr) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    body_ = new (memory) SmallBody;
    r_->request_body_no_buffering = 1;

    ngx_int_t rc = ngx_http_read_client_request_body(r_, continue_body);

    return rc >= NGX_HTTP_SPECIAL_RESPONSE ? rc : NGX_DONE;
}

void OperatorRequest::continue_body(ngx_http_request_t *r) noexcept
{
    OperatorRequest *request = find(r);

    if (request != nullptr) {
        request->read_body();
    }
}

void OperatorRequest::read_body() noexcept
{
    ngx_int_t rc;

    switch (body_->read(r_, &rc)) {
    case SmallBody::Progress::kMoreToCome:
        r_->read_event_handler = continue_body;
        return;

    case SmallBody::Progress::kFailed:
        ngx_http_finalize_request(r_, rc);
        return;

    case SmallBody::Progress::kTooLarge:
        r_->read_event_handler = ngx_http_block_reading;
        ngx_http_finalize_request(
            r_,
            send_complaint(r_, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE, too_large()));
        return;

    case SmallBody::Progress::kAll:
        r_->read_event_handler = ngx_http_block_reading;
        read_intervention();
        return;
    }
}

void OperatorRequest::read_intervention() noexcept
{
    Complaint complaint;

    if (!read_change(body_->text(), &question_.intervention, &complaint)) {
        ngx_http_finalize_request(
            r_, send_complaint(r_, NGX_HTTP_BAD_REQUEST, complaint));
        return;
    }

    ask();
}

void OperatorRequest::ask() noexcept
{
    Store &store = *question_.zone->store;
    PendingQuestion *pending =
        question_.is_list ? store.list_rulings(view(question_.zone->name),
                                               question_.cursor, *this)
                          : store.intervene(to_query(question_),
                                            question_.intervention, *this);

    if (pending == nullptr) {
        ngx_http_finalize_request(r_, send_text(r_, status_, kJsonType, text_));
        return;
    }

    pending_ = pending;
    hold(r_);
}

void OperatorRequest::receive(const ClientAnswer &answer) noexcept
{
    if (!answer.known) {
        give_up(answer.error, answer.reason);
        return;
    }

    if (is_change()) {
        report_change(r_, change());
    }

    write_client(*main_conf(r_), *question_.zone, question_.key, answer, text_);
    answer_is_there();
}

void OperatorRequest::receive(const RulingsAnswer &answer) noexcept
{
    if (answer.is_cursor_wrong) {
        status_ = NGX_HTTP_BAD_REQUEST;
        write_complaint(Complaint::about("cursor is ", question_.cursor,
                                         ", must be one that such a list has "
                                         "ended with"),
                        text_);
        answer_is_there();
        return;
    }

    if (!answer.known) {
        give_up(answer.error, answer.reason);
        return;
    }

    write_rulings(*main_conf(r_), *question_.zone,
                  static_cast<KeysShown>(location_conf(r_)->metrics.keys_shown),
                  answer, text_);
    answer_is_there();
}

void OperatorRequest::give_up(StoreError error,
                              std::string_view reason) noexcept
{
    if (is_change() && is_uncertain(error)) {
        report_uncertain_change(r_, change(), ", but got no answer");
    }

    status_ = NGX_HTTP_SERVICE_UNAVAILABLE;
    write_no_answer(*question_.zone, error, reason, text_);
    answer_is_there();
}

/* If nobody has waited, ask() sends it. If the client has gone, the request may
 * be elsewhere by now, in a post_action. */
void OperatorRequest::answer_is_there() noexcept
{
    bool has_waited = pending_ != nullptr;

    pending_ = nullptr;

    if (has_waited && is_held(r_)) {
        wakeup_.at_end_of_turn();
    }
}

void OperatorRequest::wake() noexcept
{
    if (!is_held(r_)) {
        return;
    }

    ngx_connection_t *c = r_->connection;

    ngx_http_set_log_request(c->log, r_);
    r_->read_event_handler = ngx_http_block_reading;
    r_->write_event_handler = ngx_http_request_empty_handler;

    ngx_http_finalize_request(r_, send_text(r_, status_, kJsonType, text_));
    ngx_http_run_posted_requests(c);
}

}  // namespace sl
