/*
 * A store decides whether a request may pass its limits, and counts it if so.
 *
 * Redis is one; the rest of the module knows only this interface.
 */

#pragma once

#include <cstdint>
#include <string_view>

#include "core/sl_decision.h"

namespace sl {

/* One limit of a request, as the store needs to know it. */
struct LimitQuery {
    std::string_view zone;
    std::string_view key;
    int64_t max;
    int64_t window_us;
};

/* Lives only during Store::ask(). */
struct Query {
    LimitQuery limits[kMaxLimits];
    size_t count;

    /* UUIDv7 of the request. */
    std::string_view id;
};

struct Answer {
    /* The store decided. If not, `states` mean nothing. */
    bool known;

    /* One per limit of the query, in its order. */
    LimitState states[kMaxLimits];
};

/* Whoever asked and waits. */
class AnswerReceiver {
  public:
    virtual void receive(const Answer &answer) noexcept = 0;

  protected:
    ~AnswerReceiver() = default;
};

/* A question under way. It belongs to the store. */
class PendingQuestion {
  public:
    /* The asker is gone: it must not be called any more. */
    virtual void abandon() noexcept = 0;

  protected:
    ~PendingQuestion() = default;
};

class Store {
  public:
    virtual ~Store() = default;

    /*
     * Asks whether a request may pass. Returns nullptr with `*answer` filled
     * in if that is known at once. Otherwise `receiver` gets the answer later,
     * exactly once and within the store's timeout, unless it abandons the
     * question first; never from inside this call.
     */
    virtual PendingQuestion *ask(const Query &query, AnswerReceiver &receiver,
                                 Answer *answer) noexcept = 0;

    /* A worker starts; may be called in a worker only. */
    virtual void start() noexcept = 0;

    /* A worker exits: answers what is pending and closes every connection. */
    virtual void stop() noexcept = 0;
};

}  // namespace sl
