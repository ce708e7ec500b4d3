#include "monitor/pure/sl_client_query.h"

#include "base/pure/sl_words.h"

namespace sl {

namespace {

constexpr std::string_view kZone = "zone";

struct Argument {
    std::string_view name;
    std::string_view value; /* as it stands there */
};

/* False: there are no more. */
bool take_argument(std::string_view *rest, Argument *argument)
{
    if (rest->empty()) {
        return false;
    }

    size_t end = rest->find('&');
    std::string_view piece = rest->substr(0, end);
    size_t name_end = piece.find('=');

    argument->name = piece.substr(0, name_end);
    argument->value = name_end == std::string_view::npos
                          ? std::string_view()
                          : piece.substr(name_end + 1);
    rest->remove_prefix(end == std::string_view::npos ? rest->size() : end + 1);

    return true;
}

/*
 * Writes the text to `to`, which is moved behind it: "%20" and "+" are a space,
 * as browsers and libraries write one. False: a "%" is followed by something
 * else.
 */
bool decode(std::string_view text, char **to, std::string_view *decoded)
{
    char *begin = *to;

    for (size_t i = 0; i < text.size(); i++) {
        char ch = text[i];

        if (ch == '%') {
            int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
            int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;

            if (high < 0 || low < 0) {
                return false;
            }

            ch = static_cast<char>(high << 4 | low);
            i += 2;

        } else if (ch == '+') {
            ch = ' ';
        }

        *(*to)++ = ch;
    }

    *decoded = {begin, static_cast<size_t>(*to - begin)};

    return true;
}

bool refuse(Complaint *complaint, const Complaint &why)
{
    *complaint = why;

    return false;
}

/* Which arguments were there. */
struct Seen {
    bool zone = false;
    bool key = false;
    bool overrides = false;
    bool cursor = false;
};

bool check(const ClientQuery &query, const Seen &seen, Complaint *complaint)
{
    if (!seen.zone) {
        return refuse(complaint, Complaint::of("zone is missing, must be "
                                               "?zone=ZONE&key=KEY"));
    }

    if (seen.key && seen.overrides) {
        return refuse(complaint, Complaint::of("key and overrides are both "
                                               "given, must be one of them"));
    }

    if (seen.cursor && !seen.overrides) {
        return refuse(complaint, Complaint::of("cursor goes with overrides "
                                               "alone"));
    }

    if (!seen.key && !seen.overrides) {
        return refuse(complaint,
                      Complaint::of("key is missing, must be "
                                    "?zone=ZONE&key=KEY, or "
                                    "?zone=ZONE&overrides for all who have a "
                                    "ban or an override"));
    }

    return query.is_list || !query.key.empty()
           || refuse(complaint, Complaint::of("key is empty, must be that of "
                                              "a client"));
}

}  // namespace

bool names_zone(std::string_view arguments) noexcept
{
    Argument argument;

    while (take_argument(&arguments, &argument)) {
        if (argument.name == kZone) {
            return true;
        }
    }

    return false;
}

bool read_client_query(std::string_view arguments, char *room,
                       ClientQuery *query, Complaint *complaint) noexcept
{
    std::string_view overrides;
    Seen seen;
    const struct {
        std::string_view name;
        bool *seen;
        std::string_view *value;
    } kKnown[] = {
        {kZone, &seen.zone, &query->zone},
        {"key", &seen.key, &query->key},
        {"overrides", &seen.overrides, &overrides},
        {"cursor", &seen.cursor, &query->cursor},
    };
    Argument argument;

    while (take_argument(&arguments, &argument)) {
        for (const auto &known : kKnown) {
            if (argument.name != known.name) {
                continue;
            }

            if (*known.seen) {
                return refuse(complaint,
                              Complaint::about("the argument ", known.name,
                                               " is given twice"));
            }

            *known.seen = true;

            if (!decode(argument.value, &room, known.value)) {
                return refuse(complaint,
                              Complaint::about("invalid escape sequence in ",
                                               argument.value,
                                               ", must be % and two "
                                               "hexadecimal digits"));
            }
        }
    }

    if (!overrides.empty()) {
        return refuse(complaint,
                      Complaint::about("invalid overrides ", overrides,
                                       ", must have no value"));
    }

    query->is_list = seen.overrides;

    return check(*query, seen, complaint);
}

}  // namespace sl
