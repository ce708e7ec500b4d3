#include "monitor/pure/sl_change_body.h"

#include <charconv>
#include <iterator>
#include <system_error>

#include "base/pure/sl_json.h"
#include "base/pure/sl_number.h"

namespace sl {

namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n";

/* A field that is not given has no text; one that is has at least a digit. */
struct Fields {
    std::string_view ban;
    std::string_view max;
    std::string_view duration; /* "for" */
};

/*
 * Takes an object apart of which is known that it is JSON: so every piece ends
 * where it must, and nobody has to look for that.
 */
class Members {
  public:
    explicit Members(std::string_view object) noexcept : rest_(object)
    {
        skip_white_space();
        rest_.remove_prefix(1);
    }

    /* False: there are no more. The name is without its quotes, both are as
     * they stand there. */
    bool next(std::string_view *name, std::string_view *value) noexcept
    {
        skip_white_space();

        if (rest_[0] == ',') {
            rest_.remove_prefix(1);
            skip_white_space();
        }

        if (rest_[0] == '}') {
            return false;
        }

        *name = take(string_size());
        *name = name->substr(1, name->size() - 2);

        skip_white_space();
        rest_.remove_prefix(1); /* the colon */
        skip_white_space();

        *value = take(value_size());

        return true;
    }

  private:
    void skip_white_space() noexcept
    {
        rest_.remove_prefix(rest_.find_first_not_of(kWhiteSpace));
    }

    std::string_view take(size_t size) noexcept
    {
        std::string_view piece = rest_.substr(0, size);

        rest_.remove_prefix(size);

        return piece;
    }

    size_t string_size(size_t begin = 0) const noexcept
    {
        size_t i = begin + 1;

        while (rest_[i] != '"') {
            i += rest_[i] == '\\' ? 2 : 1;
        }

        return i + 1 - begin;
    }

    size_t value_size() const noexcept
    {
        if (rest_[0] == '"') {
            return string_size();
        }

        return rest_[0] == '{' || rest_[0] == '['
                   ? nested_size()
                   : rest_.find_first_of(" \t\r\n,}");
    }

    size_t nested_size() const noexcept
    {
        size_t depth = 0;
        size_t i = 0;

        do {
            char ch = rest_[i];

            depth += ch == '{' || ch == '[' ? 1 : 0;
            depth -= ch == '}' || ch == ']' ? 1 : 0;
            i += ch == '"' ? string_size(i) : 1;
        } while (depth > 0);

        return i;
    }

    std::string_view rest_;
};

bool is_string(std::string_view value)
{
    return !value.empty() && value[0] == '"';
}

std::string_view without_quotes(std::string_view value)
{
    return is_string(value) ? value.substr(1, value.size() - 2) : value;
}

bool refuse(Complaint *complaint, const Complaint &why)
{
    *complaint = why;

    return false;
}

bool read_fields(std::string_view body, Fields *fields, Complaint *complaint)
{
    Members members(body);
    std::string_view name;
    std::string_view value;

    while (members.next(&name, &value)) {
        std::string_view *field = name == "ban"   ? &fields->ban
                                  : name == "max" ? &fields->max
                                  : name == "for" ? &fields->duration
                                                  : nullptr;

        if (field == nullptr) {
            return refuse(complaint, Complaint::about("unknown field ", name,
                                                      R"(, must be "ban", )"
                                                      R"("max" or "for")"));
        }

        if (!field->empty()) {
            return refuse(complaint, Complaint::about("the field ", name,
                                                      " is given twice"));
        }

        *field = value;
    }

    return true;
}

/* `value` is a string of JSON with a time, or something else. */
bool read_time(std::string_view value, int64_t *us)
{
    *us = is_string(value) ? read_duration(without_quotes(value)) : -1;

    return *us >= kShortestRuling && *us <= kLongestRuling;
}

bool read_ban(const Fields &fields, Intervention *to, Complaint *complaint)
{
    if (!fields.duration.empty()) {
        return refuse(complaint,
                      Complaint::of(R"("for" goes with "max" alone, must be )"
                                    R"({"ban":"15m"} for a ban)"));
    }

    to->act = Act::kBan;

    if (fields.ban == "null") {
        return true;
    }

    return read_time(fields.ban, &to->for_us)
           || refuse(complaint,
                     Complaint::about(
                         "invalid ban ", without_quotes(fields.ban),
                         R"(, must be a string with a time from 1s to 366d, )"
                         R"(for example "15m", or null to lift a ban)"));
}

bool read_number(std::string_view value, int64_t *number)
{
    const char *end = value.data() + value.size();
    auto [read_to, error] = std::from_chars(value.data(), end, *number);

    return error == std::errc() && read_to == end;
}

bool read_max(std::string_view value, int64_t *max, Complaint *complaint)
{
    if (!read_number(value, max) || *max < 0 || *max > kLargestCount) {
        return refuse(
            complaint,
            Complaint::about("invalid max ", without_quotes(value),
                             ", must be a whole number from 1 to "
                             "1000000000000000, or null to lift an override"));
    }

    return *max > 0
           || refuse(complaint,
                     Complaint::about(
                         "invalid max ", value,
                         R"(, must be 1 or more; use a ban, {"ban":"15m"}, )"
                         R"(to let nothing pass)"));
}

bool read_override(const Fields &fields, Intervention *to, Complaint *complaint)
{
    to->act = Act::kOverride;

    if (fields.max == "null") {
        return fields.duration.empty()
               || refuse(complaint,
                         Complaint::of(R"("for" does not go with a max of )"
                                       R"(null, must be {"max":null} to )"
                                       R"(lift an override)"));
    }

    if (!read_max(fields.max, &to->max, complaint)) {
        return false;
    }

    if (fields.duration.empty()) {
        return refuse(complaint,
                      Complaint::of(R"("for" is missing: how long the max is )"
                                    R"(to hold, from 1s to 366d, as in )"
                                    R"({"max":500,"for":"1d"})"));
    }

    return read_time(fields.duration, &to->for_us)
           || refuse(complaint,
                     Complaint::about(
                         R"(invalid for )", without_quotes(fields.duration),
                         R"(, must be a string with a time from 1s to 366d, )"
                         R"(for example "1d")"));
}

struct Unit {
    char name;
    int64_t seconds;
};

/* In the order in which they may stand. */
constexpr Unit kUnits[] = {
    {'y', 365 * 24 * 60 * 60},
    {'M', 30 * 24 * 60 * 60},
    {'w', 7 * 24 * 60 * 60},
    {'d', 24 * 60 * 60},
    {'h', 60 * 60},
    {'m', 60},
    {'s', 1},
};

/* Cuts off a number; -1 if there is none, or one that no time needs. */
int64_t take_number(std::string_view *text)
{
    constexpr size_t kMostDigits = 9;

    size_t digits = text->find_first_not_of("0123456789");

    digits = digits == std::string_view::npos ? text->size() : digits;

    int64_t number = -1;

    if (digits > 0 && digits <= kMostDigits) {
        (void)read_number(text->substr(0, digits), &number);
    }

    text->remove_prefix(digits);

    return number;
}

}  // namespace

int64_t read_duration(std::string_view text) noexcept
{
    const Unit *next = kUnits;
    int64_t seconds = 0;

    do {
        int64_t number = take_number(&text);
        char name = text.empty() ? 's' : text[0];

        while (next != std::end(kUnits) && next->name != name) {
            next++;
        }

        if (number < 0 || next == std::end(kUnits)) {
            return -1;
        }

        seconds += number * next->seconds;
        next++;
        text.remove_prefix(text.empty() ? 0 : 1);

        /* "1h 30m" */
        while (text.size() > 1 && text[0] == ' ') {
            text.remove_prefix(1);
        }
    } while (!text.empty());

    return seconds <= kLongestRuling / 1000000 ? seconds * 1000000 : -1;
}

bool read_change(std::string_view body, Intervention *to,
                 Complaint *complaint) noexcept
{
    Fields fields;

    *to = Intervention{};

    if (!is_json(body)) {
        return refuse(complaint,
                      Complaint::about("the body is not JSON: ", body,
                                       ", it must be an object"
                                       R"( as {"ban":"15m"})"));
    }

    if (body[body.find_first_not_of(kWhiteSpace)] != '{') {
        return refuse(complaint,
                      Complaint::about("the body is no object: ", body,
                                       R"(, it must be one )"
                                       R"(as {"ban":"15m"})"));
    }

    if (!read_fields(body, &fields, complaint)) {
        return false;
    }

    if (fields.ban.empty() == fields.max.empty()) {
        return refuse(
            complaint,
            fields.ban.empty()
                ? Complaint::about(R"(neither "ban" nor "max" is given: )",
                                   body,
                                   R"(, must be {"ban":"15m"}, )"
                                   R"({"ban":null}, {"max":500,"for":"1d"} )"
                                   R"(or {"max":null})")
                : Complaint::of(R"("ban" and "max" are both given, must be )"
                                R"(one at a time)"));
    }

    return fields.max.empty() ? read_ban(fields, to, complaint)
                              : read_override(fields, to, complaint);
}

}  // namespace sl
