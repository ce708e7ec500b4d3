#include "redis/sl_client_errand.h"

#include <algorithm>
#include <new>

#include "redis/pure/sl_client_reply.h"
#include "redis/pure/sl_cluster_slot.h"
#include "redis/sl_redis_script.h"

namespace sl {

namespace {

/* The script, two keys, and few words that are short. */
constexpr size_t kMaxCommand = kMaxScript + sizeof(RedisKey::data)
                               + sizeof(IndexKey::data)
                               + 16 * (CommandWriter::kAroundWord + kMaxDigits);

std::string_view word_for(Act act)
{
    switch (act) {
    case Act::kForget:
        return ":forget";

    case Act::kBan:
        return ":ban";

    case Act::kOverride:
        return ":max";

    case Act::kLook:
        break;
    }

    return ":look";
}

std::string_view write(const LimitQuery &client,
                       const Intervention &intervention, const RedisKey &key,
                       const IndexKey &index, char (&room)[kMaxCommand])
{
    /* while a slot moves, a command that names a key which is not there is not
     * taken if it names others: who looks gets by with one */
    bool is_look = intervention.act == Act::kLook;
    CommandWriter command(room, is_look ? 10 : 11);
    char kind[kMaxKind];

    command.add("EVAL");
    command.add(script_text());
    command.add(is_look ? 1 : 2);
    command.add(key.view());

    if (!is_look) {
        command.add(index.view());
    }

    command.add(word_for(intervention.act));
    command.add(kind_word(client.algorithm, client.buckets, kind));
    command.add(intervention.for_us);
    command.add(intervention.max);
    command.add(client.window_us);
    command.add(1);

    return {room, command.size()};
}

/* Which connection is taken, if that is not what decides about the server: the
 * one that checks of this client take. */
unsigned slot_for(const LimitQuery &client, const RedisKey &key, KeyStyle style)
{
    return cluster_slot(style == KeyStyle::kInBraces ? key.view() : client.key);
}

ClientAnswer answer_for(const ErrandFailure &failure)
{
    ClientAnswer answer{};

    answer.error = failure.error();
    answer.reason = failure.reason();

    return answer;
}

bool are_numbers(redisReply *const *words, size_t count)
{
    return std::all_of(words, words + count, [](const redisReply *word) {
        return word->type == REDIS_REPLY_INTEGER;
    });
}

/* Whether the script returns such words, whatever they say. */
bool is_from_script(const redisReply &reply, size_t *shown)
{
    if (reply.type != REDIS_REPLY_ARRAY
        || !requests_in_answer(reply.elements, shown)
        || !are_numbers(reply.element, kStandingNumbers))
    {
        return false;
    }

    redisReply *const *words = reply.element + kStandingNumbers;

    for (size_t i = 0; i < *shown; i++, words += kWordsPerRequest) {
        if (!are_numbers(words, kWordsPerRequest - 1)
            || words[kWordsPerRequest - 1]->type != REDIS_REPLY_STRING)
        {
            return false;
        }
    }

    return true;
}

/* False: the words say what cannot be. */
bool read(const redisReply &reply, size_t shown, Standing *standing)
{
    int64_t numbers[kStandingNumbers];

    for (size_t i = 0; i < kStandingNumbers; i++) {
        numbers[i] = reply.element[i]->integer;
    }

    if (!read_standing(numbers, shown, standing)) {
        return false;
    }

    redisReply *const *words = reply.element + kStandingNumbers;

    for (size_t i = 0; i < shown; i++, words += kWordsPerRequest) {
        if (!read_request(words[0]->integer, words[1]->integer,
                          text_of(words[2]), &standing->requests[i]))
        {
            return false;
        }
    }

    return true;
}

}  // namespace

PendingQuestion *ClientErrand::send(const ErrandDesk &desk,
                                    const LimitQuery &client,
                                    const Intervention &intervention,
                                    OperatorReceiver &receiver) noexcept
{
    std::string_view prefix = view(desk.settings().prefix);
    KeyStyle style = desk.key_style();
    RedisKey key = redis_key(
        prefix, client.zone, client.key, style,
        KeyFormat(client.algorithm, client.buckets, client.window_us));
    IndexKey index = index_key(prefix, client.zone, key, style);
    auto *errand = new (std::nothrow)
        ClientErrand(key, intervention.act != Act::kLook, receiver);
    ErrandFailure failure(StoreError::kMemory, "out of memory");
    char room[kMaxCommand];

    if (errand != nullptr) {
        errand->call_ =
            desk.send(write(client, intervention, key, index, room),
                      slot_for(client, key, style), *errand, &failure);
    }

    if (errand != nullptr && errand->call_ != nullptr) {
        return errand;
    }

    delete errand;
    receiver.receive(answer_for(failure));

    return nullptr;
}

/* What was sent is done, if it gets there: nobody will know. */
void ClientErrand::abandon(bool) noexcept
{
    call_->abandon(false);
    delete this;
}

/* Nobody but the operator need be told of what others have written there: the
 * server is as good as ever for whoever checks. */
bool ClientErrand::replied(const redisReply &reply,
                           std::string_view server) noexcept
{
    ClientAnswer answer{};
    size_t shown;
    bool is_reply = is_from_script(reply, &shown);

    answer.known = is_reply && read(reply, shown, &answer.standing);
    answer.server = server;

    if (answer.known) {
        tell(answer);
    } else {
        tell_uncertain(
            ErrandFailure(StoreError::kNonsense,
                          is_reply ? "what it has stored for the client is not "
                                     "what checks store"
                                   : "its answer is not what the script "
                                     "returns"),
            server);
    }

    return is_reply;
}

void ClientErrand::refused(StoreError error, std::string_view reason,
                           std::string_view server) noexcept
{
    ClientAnswer answer{};

    answer.error = error;
    answer.reason = reason;
    answer.server = server;
    tell(answer);
}

void ClientErrand::receive(const Answer &none) noexcept
{
    tell_uncertain(ErrandFailure::no_reply(none.error), {});
}

/* The script does all or nothing, but its answer is not known. */
void ClientErrand::tell_uncertain(ErrandFailure failure,
                                  std::string_view server) noexcept
{
    if (changes_something_) {
        failure.add("; what was wanted may or may not have been done");
    }

    ClientAnswer answer = answer_for(failure);

    answer.server = server;
    tell(answer);
}

void ClientErrand::tell(ClientAnswer &answer) noexcept
{
    answer.stored_as = key_.view();
    receiver_.receive(answer);
    delete this;
}

}  // namespace sl
