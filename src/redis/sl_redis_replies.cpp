/* What a channel makes of replies, be they to one call or to several. */

#include <algorithm>
#include <utility>

#include "redis/pure/sl_redis_error.h"
#include "redis/sl_redis_channel.h"

namespace sl {

namespace {

StoreError to_store_error(RedisError error)
{
    switch (error) {
    case RedisError::kUnavailable:
    case RedisError::kElsewhere:
        return StoreError::kUnavailable;

    case RedisError::kForbidden:
        return StoreError::kForbidden;

    case RedisError::kNoScript:
    case RedisError::kNoScripting:
    case RedisError::kCrossSlot:
    case RedisError::kThisCall:
        break;
    }

    return StoreError::kScript;
}

/*
 * The call has changed nothing, but may do so later, or elsewhere: it was not
 * executed, or not allowed the first thing that it wanted to write, as without
 * memory. (What is forbidden may be a later one.)
 */
bool has_changed_nothing(RedisError error)
{
    return error == RedisError::kUnavailable || error == RedisError::kElsewhere
           || error == RedisError::kNoScripting;
}

/* Something is wrong with the call, or only with asking about several requests
 * at once: a proxy may have words of its own for that. */
bool may_be_about_several(RedisError error)
{
    return error == RedisError::kCrossSlot || error == RedisError::kThisCall;
}

/* Takes the first of some keys that are written in Redis's protocol. */
std::string_view take_key(std::string_view *keys)
{
    keys->remove_prefix(keys->find('\n') + 1);

    std::string_view key = keys->substr(0, keys->find('\r'));

    keys->remove_prefix(key.size() + 2);

    return key;
}

}  // namespace

void RedisChannel::replied(RedisCall *const *calls, size_t count,
                           const redisReply *reply) noexcept
{
    CallGroup group;

    for (size_t i = 0; i < count; i++) {
        group.add(calls_.take(*calls[i]));
    }

    if (reply == nullptr) {
        lost(group);
    } else if (group.calls[0]->is_errand()) {
        reply->type == REDIS_REPLY_ERROR
            ? errand_refused(std::move(group.calls[0]), text_of(reply))
            : errand_replied(*group.calls[0], reply);
    } else if (reply->type == REDIS_REPLY_ERROR) {
        answered_with_error(group, text_of(reply));
    } else {
        answered(group, reply);
    }
}

/* The connection has said why it broke. */
void RedisChannel::lost(CallGroup &group) noexcept
{
    for (CallPtr &call : group) {
        if (call->settles()) {
            try_later(std::move(call));
        } else {
            deliver(*call, Answer::none(StoreError::kConnection));
        }
    }
}

/*
 * Those that can be tried once more are; what is wrong with the rest is said
 * once, and before they are told: whoever asked may ask again, with what is
 * known then.
 */
void RedisChannel::answered_with_error(CallGroup &group,
                                       std::string_view error) noexcept
{
    RedisError kind = classify_redis_error(error);
    bool is_alone = group.count == 1;
    bool is_reported = false;

    if (kind == RedisError::kCrossSlot) {
        owner_.found_slots();
    }

    for (CallPtr &call : group) {
        call = !is_alone && may_be_about_several(kind)
                   ? ask_alone(std::move(call))
                   : try_elsewhere(std::move(call), kind, error);
    }

    for (CallPtr &call : group) {
        if (call == nullptr) {
            continue;
        }

        Answer answer = Answer::none(to_store_error(kind));

        /* a probe asks whether the server answers, not who has the slot */
        answer.known = call->is_probe() && kind == RedisError::kElsewhere
                       && settings_.topology == Topology::kCluster;

        if (!answer.known && !std::exchange(is_reported, true)) {
            report_error(kind, error);
        }

        if (call->settles() && has_changed_nothing(kind)) {
            postpone(std::move(call));
        } else if (call->settles() && kind == RedisError::kForbidden) {
            try_later(std::move(call));
        } else {
            deliver(*call, answer);
        }
    }
}

/* Tells each call of a group what it would be told if it were alone. */
void RedisChannel::answered(CallGroup &group, const redisReply *reply) noexcept
{
    RedisCall &first = *group.calls[0];

    /* what the reply says to what settles does not matter */
    if (first.settles()) {
        if (!first.is_late()) {
            recovery_.succeeded();
        }

        return;
    }

    size_t limits = first.limits();
    LimitState states[kMaxLimitsInAnswer];
    int64_t time_us = 0;
    uint32_t misplaced = 0;
    bool is_known =
        read_reply(reply, group.count * limits, states, &time_us, &misplaced);

    if (!is_known) {
        connection_.fail(Trouble::kUnreachable,
                         "its answer is not what the script returns");
    }

    for (size_t i = 0; i < group.count; i++) {
        RedisCall &call = *group.calls[i];
        Answer answer = Answer::none(StoreError::kNonsense);

        if (is_known && (misplaced & uint32_t{1} << i * limits)) {
            report_misplaced(call);
            answer.error = StoreError::kScript;
        } else if (is_known) {
            answer.known = true;
            answer.time_us = time_us;
            std::copy_n(states + i * limits, limits, answer.states);
        }

        deliver(call, answer);
    }
}

/* ---- replies to errands ---- */

void RedisChannel::errand_replied(RedisCall &errand,
                                  const redisReply *reply) noexcept
{
    ServerName server = connection_.server_name();

    if (!errand.is_late()) {
        recovery_.succeeded();
    }

    ErrandReceiver *to = errand.end_errand();

    if (to != nullptr && !to->replied(*reply, server.view())) {
        connection_.fail(Trouble::kUnreachable,
                         "its answer to an operator is no answer");
    }
}

/* What is wrong with an errand is told to whoever sent it, and to nobody else:
 * it may be wrong with errands alone. */
void RedisChannel::errand_refused(CallPtr errand,
                                  std::string_view error) noexcept
{
    RedisError kind = classify_redis_error(error);
    ServerName server = connection_.server_name();

    if (kind == RedisError::kElsewhere
        && settings_.topology == Topology::kCluster) {
        errand = owner_.redirect(*this, std::move(errand), error);
    }

    ErrandReceiver *to = errand != nullptr ? errand->end_errand() : nullptr;

    if (to != nullptr) {
        to->refused(to_store_error(kind), OneLine(error, settings_).text(),
                    server.view());
    }
}

/* ---- what becomes of calls ---- */

/* It settles something, and nobody knows whether it has run. */
void RedisChannel::try_later(CallPtr call) noexcept
{
    if (!call->is_repeatable()) {
        call = call->take_repeatable_part();
    }

    postpone(std::move(call));
}

/* Gives the answer to whoever waits. If nobody does, what is provisional is
 * taken back. */
void RedisChannel::deliver(RedisCall &call, const Answer &answer) noexcept
{
    const Provisional *provisional = call.provisional();

    if (answer.known && !call.is_late()) {
        recovery_.succeeded();
    }

    if (answer.known && !call.is_awaited() && provisional != nullptr) {
        settle(provisional->counted_in(answer, call.is_abandoned()));
    }

    call.reply(answer);

    if (answer.error == StoreError::kConnection && !answer.known
        && provisional != nullptr)
    {
        settle(provisional->uncertain(call.is_abandoned()));
    }
}

/*
 * What was said of it and others may not be true of it alone. It has not been
 * counted then. (If the script failed halfway, it may have been: in a log it is
 * not counted twice, and elsewhere too much is counted, never too little.) What
 * nobody waits for any longer is gone.
 */
CallPtr RedisChannel::ask_alone(CallPtr call) noexcept
{
    if (call->is_late()) {
        return nullptr;
    }

    recovery_.succeeded();
    call->part();

    return send(std::move(call));
}

/* The call has not run. It may run on another server, or if it is sent again.
 */
CallPtr RedisChannel::try_elsewhere(CallPtr call, RedisError kind,
                                    std::string_view error) noexcept
{
    if (kind == RedisError::kNoScript) {
        return retry_with_script(std::move(call));
    }

    if (kind == RedisError::kElsewhere && !call->is_probe()) {
        return owner_.redirect(*this, std::move(call), error);
    }

    return call;
}

/*
 * Redis has restarted, failed over or been told to forget its scripts. The
 * call has not run, so asking again counts it once; also if its asker is gone.
 */
CallPtr RedisChannel::retry_with_script(CallPtr call) noexcept
{
    if (!call->may_be_retried() || !connection_.send_script()) {
        return call;
    }

    return send(std::move(call));
}

/* Somebody else has written there. */
void RedisChannel::report_misplaced(const RedisCall &call) noexcept
{
    char text[Outage::kMaxReason];
    size_t size = 0;

    auto add = [&](std::string_view more) {
        size += more.copy(text + size, sizeof(text) - size);
    };

    add("a value of another type stands under ");
    add(call.limits() > 1 ? "one of the keys " : "the key ");

    std::string_view keys = call.keys();

    for (size_t i = 0; i < call.limits(); i++) {
        add(i > 0 ? ", " : "");
        add(take_key(&keys));
    }

    log_.complain({text, size});
}

void RedisChannel::report_error(RedisError kind,
                                std::string_view error) noexcept
{
    bool is_cluster = settings_.topology == Topology::kCluster;

    switch (kind) {
    case RedisError::kUnavailable:
        connection_.fail(Trouble::kUnavailable, error);
        break;

    case RedisError::kForbidden:
        connection_.fail(Trouble::kForbidden, error);
        break;

    case RedisError::kNoScripting:
        connection_.fail(Trouble::kNoScripting, error);
        break;

    case RedisError::kElsewhere:
        if (is_cluster) {
            log_.complain(error);
        } else {
            connection_.fail(Trouble::kElsewhere, error);
        }

        break;

    case RedisError::kCrossSlot:
        /* without a cluster the channel's owner has been told, and knows what
         * to do */
        if (is_cluster) {
            log_.complain(error);
        }

        break;

    case RedisError::kNoScript:
    case RedisError::kThisCall:
        log_.complain(error);
        break;
    }
}

}  // namespace sl
