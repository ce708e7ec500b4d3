/*
 * One request's check: which limits apply, what the store says about them, and
 * what came of it, for the handler, the headers, the variables and the log.
 *
 *   idle ──start()──▶ waiting ──receive()──▶ idle, with an outcome
 *     └──────────── answered at once ──────────┘
 *
 * A check belongs to the request and outlives its internal redirects, which
 * may bring it to other locations with further limits: each zone is asked
 * about once. It may be destroyed at any time; the store is told.
 */

#pragma once

#include "core/sl_uuid.h"
#include "sl_config.h"
#include "sl_nginx.h"
#include "sl_store.h"

namespace sl {

enum class Outcome {
    kNone,
    kPassed,
    kRejected,
    kExempt,
    kFailedOpen,
    kFailedClosed,
};

/* The limit that headers and variables show. */
struct ShownLimit {
    const Limit *limit; /* nullptr: none */

    /* `state` is the store's word. If not, only the limit itself is known. */
    bool known;
    LimitState state;

    /* When it said so, in nginx's milliseconds. */
    ngx_msec_t at;
};

class Check final : public AnswerReceiver {
  public:
    /* The request's check, or nullptr if it has none. */
    static Check *find(ngx_http_request_t *r) noexcept;

    /* nullptr: out of memory. */
    static Check *find_or_create(ngx_http_request_t *r) noexcept;

    /*
     * Asks about the limits of the request's location that have not been
     * asked about. Afterwards is_waiting(), or outcome() is up to date.
     */
    void start() noexcept;

    bool is_waiting() const noexcept;

    /* True once after a wait: the store has answered. */
    bool take_answer() noexcept;

    Outcome outcome() const noexcept { return outcome_; }

    bool is_refused() const noexcept
    {
        return outcome_ == Outcome::kRejected
               || outcome_ == Outcome::kFailedClosed;
    }

    const ShownLimit &shown() const noexcept { return shown_; }

    /* UUIDv7, made on first use. */
    std::string_view id() noexcept;

    /* Microseconds spent waiting for the store. */
    int64_t spent_us() const noexcept { return spent_us_; }

    /* A store answered; called by nobody else. */
    void receive(const Answer &answer) noexcept override;

  private:
    explicit Check(ngx_http_request_t *r) noexcept;

    bool select_limits(Query *query) noexcept;
    bool add_limit(const Limit *limit, Query *query) noexcept;
    bool is_asked(const Zone *zone) const noexcept;
    void conclude(const Answer &answer) noexcept;
    void show(const Limit *limit, const LimitState &state,
              bool refused) noexcept;
    void fail() noexcept;
    void abandon_question() noexcept;
    void wait() noexcept;
    void resume() noexcept;

    static void detach(void *data) noexcept;
    static void stay(ngx_http_request_t *r) noexcept;

    ngx_http_request_t *r_;
    PendingQuestion *pending_;
    bool answered_;
    Outcome outcome_;
    ShownLimit shown_;

    /* The limits of the question under way. */
    const Limit *asked_[kMaxLimits];
    size_t asked_count_;

    /* Zone *: those asked about so far, over all redirects. */
    ngx_array_t zones_;

    int64_t started_us_;
    int64_t spent_us_;
    bool has_id_;
    char id_[kUuidSize];
};

}  // namespace sl
