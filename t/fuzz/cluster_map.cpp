/*
 * What a server of a cluster says about it: the answer to CLUSTER NODES, taken
 * apart a second time by the plainest means.
 */

#include "redis/pure/sl_cluster_map.h"

#include <vector>

#include "fuzz.h"
#include "redis/pure/sl_cluster_slot.h"

namespace {

using Words = std::vector<std::string>;

Words split(const std::string &text, char separator)
{
    Words words(1);

    for (char ch : text) {
        if (ch == separator) {
            words.emplace_back();
        } else {
            words.back() += ch;
        }
    }

    return words;
}

bool has(const Words &words, const std::string &wanted)
{
    return std::find(words.begin(), words.end(), wanted) != words.end();
}

/* -1 if it is no number up to `most`. */
long number(const std::string &text, long most)
{
    long n = 0;

    for (char ch : text) {
        if (ch < '0' || ch > '9' || n > most) {
            return -1;
        }

        n = n * 10 + (ch - '0');
    }

    return text.empty() || n > most ? -1 : n;
}

bool may_be_host(const std::string &text)
{
    return text == "?"
           || text.find_first_not_of("abcdefghijklmnopqrstuvwxyz"
                                     "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "0123456789.:-_")
                  == std::string::npos;
}

/* The words from the ninth on are ranges; those in brackets are on the move. */
void check_slots(const Words &words, std::string_view slots)
{
    unsigned first;
    unsigned last;

    for (size_t i = 8; i < words.size(); i++) {
        size_t dash = words[i].find('-');
        long from = number(words[i].substr(0, dash), sl::kClusterSlots - 1);
        long to =
            dash == std::string::npos || dash + 1 == words[i].size()
                ? from
                : number(words[i].substr(dash + 1), sl::kClusterSlots - 1);

        if (from >= 0 && to >= from) {
            check(sl::next_slots(&slots, &first, &last));
            check(first == static_cast<unsigned>(from));
            check(last == static_cast<unsigned>(to));
        }
    }

    check(!sl::next_slots(&slots, &first, &last));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    std::string text = Input(data, size).rest();
    std::string_view rest = text;
    sl::ClusterPrimary primary;

    for (std::string line : split(text, '\n')) {
        if (!line.empty() && line.back() == '\r') {
            line.pop_back();
        }

        Words words = split(line, ' ');

        words.resize(std::max<size_t>(words.size(), 3));

        Words where = split(words[1], ',');
        Words flags = split(words[2], ',');
        std::string address = where[0].substr(0, where[0].find('@'));
        size_t colon = address.rfind(':');
        long port = colon == std::string::npos
                        ? -1
                        : number(address.substr(colon + 1), 65535);

        if (!has(flags, "master") || has(flags, "noaddr")
            || has(flags, "handshake") || port < 1)
        {
            continue;
        }

        std::string host = address.substr(0, colon);

        if (!may_be_host(host)) {
            continue;
        }

        check(sl::next_primary(&rest, &primary));
        check(primary.address.host == (host == "?" ? "" : host));
        check(primary.address.port == port);
        check(primary.host_name == (where.size() > 1 ? where[1] : ""));
        check_slots(words, primary.slots);
    }

    check(!sl::next_primary(&rest, &primary));
    check(rest.empty());

    return 0;
}
