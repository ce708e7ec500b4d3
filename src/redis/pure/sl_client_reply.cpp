#include "redis/pure/sl_client_reply.h"

#include "base/pure/sl_number.h"

namespace sl {

namespace {

/* More than a century: sums of two do not overflow. */
constexpr int64_t kLongest = int64_t{1} << 52;

/* As far as the numbers of Lua are exact. */
constexpr int64_t kLargest = int64_t{1} << 53;

bool is_within(int64_t number, int64_t largest)
{
    return number >= 0 && number <= largest;
}

/* Takes digits, and the ':' behind them; false: it begins otherwise. */
bool take_number(std::string_view *text, int64_t *number)
{
    std::string_view digits = text->substr(0, text->find(':'));

    *number = 0;

    for (char ch : digits) {
        if (ch < '0' || ch > '9' || *number > kLargest) {
            return false;
        }

        *number = *number * 10 + (ch - '0');
    }

    bool has_more = digits.size() < text->size();

    text->remove_prefix(digits.size() + (has_more ? 1 : 0));

    return !digits.empty() && *number <= kLargest;
}

}  // namespace

bool requests_in_answer(size_t words, size_t *requests) noexcept
{
    if (words < kStandingNumbers) {
        return false;
    }

    *requests = (words - kStandingNumbers) / kWordsPerRequest;

    return (words - kStandingNumbers) % kWordsPerRequest == 0
           && *requests <= Standing::kMostShown;
}

bool read_standing(const int64_t (&numbers)[kStandingNumbers], size_t shown,
                   Standing *standing) noexcept
{
    auto [used, wait, ban_left, max, max_left, entries] = numbers;

    if (!is_within(used, kLargest) || !is_within(wait, kLongest)
        || !is_within(ban_left, kLongest) || !is_within(max, kLargestCount)
        || !is_within(max_left, kLongest) || !is_within(entries, kLargest)
        || (max == kOwnMax) != (max_left == 0)
        || entries < static_cast<int64_t>(shown))
    {
        return false;
    }

    standing->used = used;
    standing->wait_us = wait;
    standing->ban_left_us = ban_left;
    standing->max = max;
    standing->max_left_us = max_left;
    standing->entries = entries;
    standing->shown = shown;

    return true;
}

bool read_request(int64_t ago_us, int64_t cost, std::string_view id,
                  CountedRequest *request) noexcept
{
    if (!is_within(ago_us, kLongest) || !is_within(cost, kLargest)
        || id.size() > sizeof(request->id))
    {
        return false;
    }

    request->ago_us = ago_us;
    request->cost = cost;
    request->id_size =
        static_cast<uint8_t>(id.copy(request->id, sizeof(request->id)));

    return true;
}

bool read_ruling(std::string_view text, Ruling *ruling) noexcept
{
    constexpr size_t kNumbers = 3;

    int64_t numbers[kNumbers];
    size_t count = 1;

    for (char ch : text) {
        count += ch == ':';
    }

    if (count != kNumbers) {
        return false;
    }

    for (int64_t &number : numbers) {
        if (!take_number(&text, &number)) {
            return false;
        }
    }

    *ruling = Ruling{numbers[0], numbers[1], numbers[2]};

    return ruling->max <= kLargestCount
           && (ruling->max == kOwnMax) == (ruling->max_until_us == 0);
}

bool read_time(std::string_view text, int64_t *time_us) noexcept
{
    return text.find(':') == text.npos && take_number(&text, time_us);
}

bool ruled_now(const Ruling &ruling, int64_t now_us,
               RuledClient *client) noexcept
{
    bool overrides = ruling.overrides(now_us);

    client->ban_left_us =
        ruling.bans(now_us) ? ruling.ban_until_us - now_us : 0;
    client->max = overrides ? ruling.max : kOwnMax;
    client->max_left_us = overrides ? ruling.max_until_us - now_us : 0;

    return ruling.bans(now_us) || overrides;
}

}  // namespace sl
