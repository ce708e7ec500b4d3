#include "redis/pure/sl_cluster_map.h"

#include <algorithm>

#include "base/pure/sl_number.h"
#include "base/pure/sl_words.h"
#include "redis/pure/sl_cluster_slot.h"

namespace sl {

namespace {

constexpr auto npos = std::string_view::npos;

/* Takes what stands before the next `end`, or all if there is none. */
std::string_view take(std::string_view *text, char end)
{
    size_t size = text->find(end);
    std::string_view taken = text->substr(0, size);

    text->remove_prefix(size == npos ? text->size() : size + 1);

    return taken;
}

bool has_word(std::string_view words, std::string_view word)
{
    while (!words.empty()) {
        if (take(&words, ',') == word) {
            return true;
        }
    }

    return false;
}

bool parse_slot(std::string_view text, unsigned *to)
{
    int64_t number = parse_count(text);

    *to = static_cast<unsigned>(number);

    return number >= 0 && number < kClusterSlots;
}

/* What a server says comes to stand in the log, as the name of another one:
 * there must be nothing in it that no address and no name in DNS has. */
bool may_be_host(std::string_view text)
{
    constexpr std::string_view kSigns = ".:-_";

    return std::all_of(text.begin(), text.end(), [&](char ch) {
        return is_letter_or_digit(ch) || kSigns.find(ch) != npos;
    });
}

}  // namespace

bool parse_cluster_address(std::string_view text, ClusterAddress *to) noexcept
{
    size_t colon = text.rfind(':');

    if (colon == npos) {
        return false;
    }

    int64_t port = parse_count(text.substr(colon + 1));

    to->host = text.substr(0, colon);
    to->port = static_cast<uint16_t>(port);

    /* so writes a server that does not know where it is itself */
    if (to->host == "?") {
        to->host = {};
    }

    return port >= 1 && port <= 65535 && may_be_host(to->host);
}

bool parse_redirection(std::string_view error, Redirection *to) noexcept
{
    std::string_view kind = take(&error, ' ');

    to->is_ask = kind == "ASK";

    return (to->is_ask || kind == "MOVED")
           && parse_slot(take(&error, ' '), &to->slot)
           && parse_cluster_address(error, &to->to);
}

/* A line is: id host:port@bus[,name] flags primary ping pong epoch state slots
 */
bool next_primary(std::string_view *text, ClusterPrimary *to) noexcept
{
    while (!text->empty()) {
        std::string_view line = take(text, '\n');

        if (!line.empty() && line.back() == '\r') {
            line.remove_suffix(1);
        }

        take(&line, ' ');

        std::string_view where = take(&line, ' ');
        std::string_view flags = take(&line, ' ');

        for (int i = 0; i < 5; i++) {
            take(&line, ' ');
        }

        std::string_view address = take(&where, ',');

        to->host_name = take(&where, ',');
        to->slots = line;

        if (has_word(flags, "master") && !has_word(flags, "noaddr")
            && !has_word(flags, "handshake")
            && parse_cluster_address(take(&address, '@'), &to->address))
        {
            return true;
        }
    }

    return false;
}

bool next_slots(std::string_view *slots, unsigned *first,
                unsigned *last) noexcept
{
    while (!slots->empty()) {
        std::string_view range = take(slots, ' ');
        std::string_view from = take(&range, '-');

        /* what stands in brackets is on its way to or from elsewhere */
        if (parse_slot(from, first)
            && parse_slot(range.empty() ? from : range, last)
            && *first <= *last)
        {
            return true;
        }
    }

    return false;
}

}  // namespace sl
