#include "request/sl_question.h"

#include <algorithm>

#include "base/sl_clock.h"
#include "request/pure/sl_grouping.h"

namespace sl {

namespace {

Groupable describe(const AppliedLimit &applied)
{
    const Store *store = applied.limit->zone->store;

    return {applied.is_asked, store, store->decides_together(),
            view(applied.key)};
}

void count_error(const Store &store, StoreError error)
{
    add(store.metrics().errors[static_cast<size_t>(error)]);
}

/* Keeps in mind what a store has refused, or refuses no more. */
void learn(ngx_http_request_t *r, const AppliedLimit &answered,
           int64_t asked_us)
{
    DenyCache &deny_cache = *main_conf(r)->deny_cache;

    if (!answered.verdict.state.admits) {
        deny_cache.remember(to_query(answered), answered.verdict.state,
                            asked_us);
    } else if (answered.is_rechecked) {
        deny_cache.forget(to_query(answered));
    }
}

Outcome accept(ngx_http_request_t *r, const Question &question,
               const Answer &answer, Store *from)
{
    const LimitState *state = answer.states;

    for (AppliedLimit *asked : question) {
        note(asked, *state++, from->kind());
        asked->answered_by = from;
        asked->counted_at_us = answer.time_us;

        /* if the store has failed, it has not refused anybody */
        if (from == question.store) {
            learn(r, *asked, question.asked_us);
        }
    }

    return judge(r, question);
}

/* Dry runs refuse nobody for want of an answer either. */
Outcome do_without_answer(ngx_http_request_t *r, const Question &question)
{
    bool is_dry_run = std::all_of(
        question.begin(), question.end(),
        [](const AppliedLimit *asked) { return asked->verdict.dry_run; });

    return location_conf(r)->on_error == kDeny && !is_dry_run
               ? Outcome::kFailedClosed
               : Outcome::kFailedOpen;
}

/*
 * A refusal that is remembered holds until the moment that it names: that
 * nobody can ask the store again makes no difference.
 */
Outcome do_without_store(ngx_http_request_t *r, const Question &question,
                         StoreError why)
{
    MemoryStore *memory = main_conf(r)->memory;

    for (AppliedLimit *asked : question) {
        asked->has_failed = true;
        asked->is_uncertain =
            why == StoreError::kTimeout || why == StoreError::kConnection;
    }

    Query query = to_query(question);

    if (recall_refusals(r, question, query, kAnyAge)) {
        return judge(r, question);
    }

    if (location_conf(r)->on_error != kLocal || question.store == memory) {
        return do_without_answer(r, question);
    }

    Answer answer = Answer::none(StoreError::kMemory);
    memory->decide(query, &answer);

    if (!answer.known) {
        count_error(*memory, answer.error);
        return do_without_answer(r, question);
    }

    return accept(r, question, answer, memory);
}

}  // namespace

Question next_question(AppliedLimits *limits) noexcept
{
    Group group = next_group(
        limits->size(), [limits](size_t i) { return describe((*limits)[i]); });
    Question question{};

    question.count = group.count;

    for (size_t i = 0; i < group.count; i++) {
        AppliedLimit &asked = (*limits)[group.members[i]];

        asked.is_asked = true;
        asked.asked_with = group.members[0];
        question.limits[i] = &asked;
    }

    if (question.count > 0) {
        question.store = question.limits[0]->limit->zone->store;
        question.asked_us = monotonic_us();
    }

    return question;
}

Query to_query(const Question &question) noexcept
{
    Query query;

    query.count = 0;
    query.first_key = view(question.limits[0]->key);

    for (const AppliedLimit *asked : question) {
        query.limits[query.count++] = to_query(*asked);
    }

    return query;
}

bool recall_refusals(ngx_http_request_t *r, const Question &question,
                     const Query &query, int64_t max_age_us) noexcept
{
    Recollection known;
    bool is_refused = main_conf(r)->deny_cache->recall(query, question.asked_us,
                                                       max_age_us, &known);

    for (size_t i = 0; i < question.count; i++) {
        AppliedLimit &asked = *question.limits[i];

        asked.is_rechecked = known.recalled[i] == Recalled::kAskAgain;

        if (is_refused && known.recalled[i] == Recalled::kRefusal) {
            note(&asked, known.states[i], kDenyCache);
        }
    }

    return is_refused;
}

Outcome judge(ngx_http_request_t *r, const AppliedLimit &applied) noexcept
{
    Outcome outcome = outcome_of(applied.verdict);

    if (outcome == Outcome::kRejectedDryRun) {
        ngx_log_error(location_conf(r)->log_level, r->connection->log, 0,
                      "sliding_limit: would be refused by zone \"%V\", max %L "
                      "in %M ms, but for its dry run",
                      &applied.limit->zone->name, applied.verdict.max,
                      applied.limit->zone->window);
    }

    return outcome;
}

Outcome judge(ngx_http_request_t *r, const Question &question) noexcept
{
    Outcome outcome = Outcome::kNone;

    for (const AppliedLimit *asked : question) {
        outcome = outweighing(outcome, judge(r, *asked));
    }

    return outcome;
}

Outcome interpret(ngx_http_request_t *r, const Question &question,
                  const Answer &answer) noexcept
{
    if (answer.known) {
        return accept(r, question, answer, question.store);
    }

    count_error(*question.store, answer.error);

    return do_without_store(r, question, answer.error);
}

bool is_to_be_divided(const Question &question, const Answer &answer) noexcept
{
    return !answer.known && answer.error == StoreError::kScript
           && question.count > 1
           && !are_decided_together(describe(*question.limits[0]),
                                    describe(*question.limits[1]));
}

void divide(const Question &question) noexcept
{
    for (AppliedLimit *asked : question) {
        asked->is_asked = false;
    }
}

}  // namespace sl
