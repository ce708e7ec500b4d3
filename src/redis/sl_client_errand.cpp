#include "redis/sl_client_errand.h"

#include <new>

#include "redis/pure/sl_client_reply.h"
#include "redis/pure/sl_cluster_slot.h"
#include "redis/sl_redis_script.h"

namespace sl {

namespace {

/* The script, two keys, and few words that are short. */
constexpr size_t kMaxCommand = kMaxClientScript + sizeof(RedisKey::data)
                               + sizeof(IndexKey::data)
                               + 16 * (CommandWriter::kAroundWord + kMaxDigits);

std::string_view word_for(Act act)
{
    switch (act) {
    case Act::kForget:
        return "forget";

    case Act::kBan:
        return "ban";

    case Act::kOverride:
        return "max";

    case Act::kLook:
        break;
    }

    return "look";
}

std::string_view write(const LimitQuery &client,
                       const Intervention &intervention, const RedisKey &key,
                       const IndexKey &index, char (&room)[kMaxCommand])
{
    CommandWriter command(room, 10);

    command.add("EVAL");
    command.add(client_script_text());
    command.add(2);
    command.add(key.view());
    command.add(index.view());
    command.add(word_for(intervention.act));
    command.add(client.window_us);
    command.add(static_cast<int64_t>(client.buckets));
    command.add(intervention.for_us);
    command.add(intervention.max);

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

bool read_numbers(redisReply *const *words, size_t count, int64_t *numbers)
{
    for (size_t i = 0; i < count; i++) {
        if (words[i]->type != REDIS_REPLY_INTEGER) {
            return false;
        }

        numbers[i] = words[i]->integer;
    }

    return true;
}

bool read_request_from(redisReply *const *words, CountedRequest *request)
{
    int64_t numbers[kWordsPerRequest - 1];
    const redisReply *id = words[kWordsPerRequest - 1];

    return read_numbers(words, kWordsPerRequest - 1, numbers)
           && id->type == REDIS_REPLY_STRING
           && read_request(numbers[0], numbers[1], numbers[2], text_of(id),
                           request);
}

/* False: it is not what the script returns. */
bool read(const redisReply &reply, Standing *standing)
{
    int64_t numbers[kStandingNumbers];
    size_t shown;

    if (reply.type != REDIS_REPLY_ARRAY
        || !requests_in_answer(reply.elements, &shown)
        || !read_numbers(reply.element, kStandingNumbers, numbers)
        || !read_standing(numbers, shown, standing))
    {
        return false;
    }

    redisReply *const *words = reply.element + kStandingNumbers;

    for (size_t i = 0; i < shown; i++, words += kWordsPerRequest) {
        if (!read_request_from(words, &standing->requests[i])) {
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
    RedisKey key = redis_key(prefix, client.zone, client.key, style);
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

bool ClientErrand::replied(const redisReply &reply,
                           std::string_view server) noexcept
{
    ClientAnswer answer{};

    answer.known = read(reply, &answer.standing);
    answer.server = server;

    if (!answer.known) {
        tell_uncertain(ErrandFailure(StoreError::kNonsense,
                                     "its answer is not what the script "
                                     "returns"),
                       server);
        return false;
    }

    tell(answer);

    return true;
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
