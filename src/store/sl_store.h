/*
 * A store decides whether a request may pass its limits, and counts it if so.
 *
 * Redis is one, the memory of this nginx another; the rest of the module knows
 * only this interface.
 */

#pragma once

#include <cstdint>
#include <string_view>

#include "store/pure/sl_limit_query.h"
#include "store/pure/sl_limit_state.h"
#include "store/pure/sl_outage.h"
#include "store/pure/sl_standing.h"
#include "store/pure/sl_store_error.h"
#include "store/pure/sl_store_metrics.h"

namespace sl {

/* What a store is told of a request's question. It lives only during the call
 * that it is given to. */
struct Query {
    LimitQuery limits[kMaxLimits];
    size_t count;

    /* UUIDv7 of the request; empty if the store has no use for it. */
    std::string_view id;

    /* The key that the question begins with. What settles it follows on the
     * same way, so that nothing asked later overtakes it. */
    std::string_view first_key;

    /* How long the request has waited for this store before: so much less is
     * left of the store's timeout. */
    int64_t waited_us = 0;
};

struct Answer {
    /* Whether the store decided. If not, only `error` means something: why. */
    bool known;
    StoreError error;

    static Answer none(StoreError why) noexcept
    {
        Answer answer;

        answer.known = false;
        answer.error = why;
        answer.time_us = 0;

        return answer;
    }

    /* When, by the store's clock; it belongs to what is taken back. */
    int64_t time_us;

    /* One per limit of the query, in its order. */
    LimitState states[kMaxLimits];
};

/* The one who asked, and waits. */
class AnswerReceiver {
  public:
    virtual void receive(const Answer &answer) noexcept = 0;

  protected:
    ~AnswerReceiver() = default;
};

/* What a store says about one client. */
struct ClientAnswer {
    /* Whether it did as it was told. If not, `error` and perhaps `reason`, in
     * its own words, say why: it has not, or nobody knows whether it has. */
    bool known;
    StoreError error;
    std::string_view reason;

    /* Which server answered, and what its counts are called there; empty: this
     * nginx. */
    std::string_view server;
    std::string_view stored_as;

    /* Where the client stands now. */
    Standing standing;
};

/* What a store says about those in a zone about whom something was ruled. */
struct RulingsAnswer {
    bool known;
    StoreError error;
    std::string_view reason;

    /* Nobody was asked: no such answer can have ended with that cursor. */
    bool is_cursor_wrong;

    const RuledClient *clients;
    size_t count;

    /* There may be more: what to ask with next. Empty: these are all. */
    std::string_view cursor;
};

/* An operator who asked, and waits. The answer lasts only during the call. */
class OperatorReceiver {
  public:
    virtual void receive(const ClientAnswer &answer) noexcept = 0;
    virtual void receive(const RulingsAnswer &answer) noexcept = 0;

  protected:
    ~OperatorReceiver() = default;
};

/* A question that is under way. This belongs to the store. */
class PendingQuestion {
  public:
    /*
     * The asker is gone: it must not be called any more. What would have been
     * settled later is taken back when the answer comes, and what is
     * provisional unless that is to be kept.
     */
    virtual void abandon(bool keep_provisional) noexcept = 0;

  protected:
    ~PendingQuestion() = default;
};

class Store {
  public:
    virtual ~Store() = default;

    /* For $sliding_limit_store. */
    virtual std::string_view kind() const noexcept = 0;

    /* Where the store is, without passwords; empty: in this nginx. */
    virtual std::string_view address() const noexcept { return {}; }

    /* A number for what it counts in: with another server, database or prefix
     * it is another one. Known when the whole configuration is read. 0: this
     * nginx. */
    virtual uint64_t identity() const noexcept { return 0; }

    /* How many of its servers are regarded as down. */
    virtual unsigned breakers_open() const noexcept { return 0; }

    /*
     * One of those servers, and why: the next after `*place`, which is 0 to
     * begin with. False: there are no more.
     */
    virtual bool next_outage(size_t *, Outage *) const noexcept
    {
        return false;
    }

    /* What workers count about the store; see count_in(). */
    StoreMetrics &metrics() const noexcept { return *metrics_; }

    /* Before any worker starts. Without it, nobody will see what is counted. */
    void count_in(StoreMetrics *metrics) noexcept { metrics_ = metrics; }
    bool is_counted() const noexcept { return metrics_ != &unseen_; }

    /* The store marks what it counts with the request's id. */
    virtual bool uses_ids() const noexcept { return false; }

    /* What it can decide at once; that may become less while it is asked. */
    virtual Together decides_together() const noexcept
    {
        return Together::kAll;
    }

    /*
     * Asks whether a request may pass. Returns nullptr with `*answer` filled
     * in if that is known at once. Otherwise `receiver` gets the answer later,
     * exactly once and within the store's timeout, unless it abandons the
     * question first; never from inside this call.
     */
    virtual PendingQuestion *ask(const Query &query, AnswerReceiver &receiver,
                                 Answer *answer) noexcept = 0;

    /*
     * What a query with these limits and this id has counted becomes what it
     * has cost after all, their `true_cost`: with 0 it is taken back, of more
     * than that the rest is given back, and what exceeds its cost counts from
     * now on, beyond max, too. Nobody waits for it, but what is asked later on
     * sees it. `time_us` is the answer's time, or kUncertain if there was no
     * answer and the request may yet be counted: that can only be taken back,
     * and a store may be unable to do so for some of the limits.
     */
    static constexpr int64_t kUncertain = 0;
    virtual void settle(const Query &query, int64_t time_us) noexcept = 0;

    /*
     * Does something about one client, and tells where it stands then; of the
     * limit its max and cost do not matter. Returns nullptr if the receiver has
     * been called. Otherwise that happens later, exactly once and within the
     * store's timeout, unless it abandons the question first.
     */
    virtual PendingQuestion *intervene(const LimitQuery &client,
                                       const Intervention &intervention,
                                       OperatorReceiver &receiver) noexcept = 0;

    /*
     * Tells of clients in the zone about whom something was ruled, some at a
     * time: from the beginning if `cursor` is empty. In the same way as
     * intervene().
     */
    virtual PendingQuestion *list_rulings(
        std::string_view zone, std::string_view cursor,
        OperatorReceiver &receiver) noexcept = 0;

    /* A worker starts; may be called in a worker only. */
    virtual void start() noexcept = 0;

    /* A worker exits: answers what is pending and closes every connection. */
    virtual void stop() noexcept = 0;

  private:
    static StoreMetrics unseen_;

    StoreMetrics *metrics_ = &unseen_;
};

inline StoreMetrics Store::unseen_;

}  // namespace sl
