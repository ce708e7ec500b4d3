/*
 * What usage a body tells of, found by the rules but without haste: the whole
 * of it is there, texts are copied, and every value knows the names that lead
 * to it. It shares nothing with the code under test.
 */

#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "json_reference.h"

namespace usage_reference {

using Names = std::vector<std::string>;

inline std::vector<std::string> split(std::string_view text, char separator)
{
    std::vector<std::string> parts(1);

    for (char ch : text) {
        if (ch == separator) {
            parts.emplace_back();
        } else {
            parts.back() += ch;
        }
    }

    return parts;
}

inline bool is_path(std::string_view text)
{
    Names names = split(text, '.');

    for (const std::string &name : names) {
        if (name.empty() || name.size() > 64) {
            return false;
        }
    }

    return names.size() <= 8;
}

inline bool is_in(char ch, std::string_view signs)
{
    return signs.find(ch) != std::string_view::npos;
}

inline bool is_digit(char ch)
{
    return is_in(ch, "0123456789");
}

inline bool is_index(const std::string &name)
{
    const std::string largest = "18446744073709551615";

    return name.find_first_not_of("0123456789") == std::string::npos
           && (name == "0" || name[0] != '0') && name.size() <= largest.size()
           && (name.size() < largest.size() || name <= largest);
}

/* A number rounded up, with all its digits written out; -1 if it is below zero.
 */
inline int64_t rounded_up(const std::string &number)
{
    constexpr int64_t kLargest = 1000000000000000;
    constexpr long kFar = 1000000;

    bool is_negative = number[0] == '-';
    size_t e = std::min(number.find_first_of("eE"), number.size());
    std::string mantissa = number.substr(is_negative, e - is_negative);
    size_t point = std::min(mantissa.find('.'), mantissa.size());
    long exponent = 0;

    for (size_t i = e + 1; i < number.size(); i++) {
        if (is_digit(number[i])) {
            exponent = std::min(exponent * 10 + (number[i] - '0'), kFar);
        }
    }

    if (e + 1 < number.size() && number[e + 1] == '-') {
        exponent = -exponent;
    }

    std::string digits = mantissa.substr(0, point);

    if (point < mantissa.size()) {
        digits += mantissa.substr(point + 1);
    }

    if (digits.find_first_not_of('0') == std::string::npos) {
        return 0;
    }

    if (is_negative) {
        return -1;
    }

    long whole = static_cast<long>(point) + exponent;

    if (whole <= 0) {
        return 1;
    }

    auto whole_size = static_cast<size_t>(whole);

    if (digits.size() < whole_size) {
        digits.resize(whole_size, '0');
    }

    bool has_fraction =
        digits.find_first_not_of('0', whole_size) != std::string::npos;

    digits.resize(whole_size);
    digits.erase(0, digits.find_first_not_of('0'));

    if (digits.size() > 16) {
        return kLargest;
    }

    return std::min<int64_t>(strtoll(digits.c_str(), nullptr, 10)
                                 + (has_fraction ? 1 : 0),
                             kLargest);
}

/* Thrown where nothing more is read, be it for a fault or for the end. */
struct Stop {};

class Documents {
  public:
    Documents(std::string_view text, const std::vector<Names> &paths)
        : text_(text), paths_(paths)
    {}

    /* -1 if there is none. */
    int64_t usage(bool is_one)
    {
        try {
            do {
                document_or_list();
            } while (!is_one);
        } catch (Stop) {
            keep();
        }

        return last_;
    }

  private:
    void keep()
    {
        last_ = found_.empty() ? last_ : found_.begin()->second;
        found_.clear();
    }

    void document_or_list()
    {
        if (peek_after_space() != '[' || leads_into_array()) {
            document();
            return;
        }

        at_++;

        if (peek_after_space() == ']') {
            at_++;
            return;
        }

        do {
            document();
        } while (goes_on(']'));
    }

    void document()
    {
        value();
        keep();
    }

    char peek() const
    {
        if (at_ == text_.size()) {
            throw Stop();
        }

        return text_[at_];
    }

    char take()
    {
        char ch = peek();

        at_++;

        return ch;
    }

    void take(char wanted)
    {
        if (take() != wanted) {
            throw Stop();
        }
    }

    char peek_after_space()
    {
        while (is_in(peek(), " \t\r\n")) {
            at_++;
        }

        return peek();
    }

    bool leads_here(const Names &path) const
    {
        return path.size() >= here_.size()
               && std::equal(here_.begin(), here_.end(), path.begin());
    }

    void forget()
    {
        for (size_t i = 0; i < paths_.size(); i++) {
            if (leads_here(paths_[i])) {
                found_.erase(i);
            }
        }
    }

    template <typename Condition>
    bool some_path(Condition condition) const
    {
        for (const Names &path : paths_) {
            if (leads_here(path) && condition(path)) {
                return true;
            }
        }

        return false;
    }

    bool leads_into_object() const
    {
        return some_path(
            [this](const Names &path) { return path.size() > here_.size(); });
    }

    bool leads_into_array() const
    {
        return some_path([this](const Names &path) {
            return path.size() > here_.size() && is_index(path[here_.size()]);
        });
    }

    void value()
    {
        char ch = peek_after_space();

        if (ch == '{' || ch == '[') {
            at_++;
            forget();

            if (ch == '{' && leads_into_object()) {
                object();
            } else if (ch == '[' && leads_into_array()) {
                array();
            } else {
                skip_nested();
            }
        } else if (ch == '"') {
            forget();
            (void)string();
        } else if (is_in(ch, "+-.0123456789")
                   && some_path([](const Names &) { return true; }))
        {
            number();
        } else {
            word();
        }
    }

    void object()
    {
        if (peek_after_space() == '}') {
            at_++;
            return;
        }

        do {
            if (peek_after_space() != '"') {
                throw Stop();
            }

            std::string key = decoded(string());

            peek_after_space();
            take(':');
            here_.push_back(key);
            value();
            here_.pop_back();
        } while (goes_on('}'));
    }

    void array()
    {
        if (peek_after_space() == ']') {
            at_++;
            return;
        }

        size_t index = 0;

        do {
            here_.push_back(std::to_string(index++));
            value();
            here_.pop_back();
        } while (goes_on(']'));
    }

    bool goes_on(char end)
    {
        char ch = peek_after_space();

        if (ch != ',' && ch != end) {
            throw Stop();
        }

        at_++;

        return ch == ',';
    }

    /* Any brackets, as many of them as were opened. */
    void skip_nested()
    {
        size_t open = 1;

        while (open > 0) {
            char ch = peek();

            if (ch == '"') {
                (void)string();
                continue;
            }

            at_++;

            if (ch == '\\') {
                take();
            } else if (is_in(ch, "{[")) {
                open++;
            } else if (is_in(ch, "}]")) {
                open--;
            }
        }
    }

    /* As it is written. */
    std::string string()
    {
        std::string raw;

        take('"');

        for (;;) {
            char ch = take();

            if (ch == '"') {
                return raw;
            }

            raw += ch;

            if (ch == '\\') {
                raw += take();
            }
        }
    }

    /* The code unit of an escape such as \u0061 there; -1 if there is none. */
    static long code_unit(const std::string &raw, size_t at)
    {
        if (raw.compare(at, 2, "\\u") != 0 || raw.size() < at + 6) {
            return -1;
        }

        std::string digits = raw.substr(at + 2, 4);

        return digits.find_first_not_of("0123456789abcdefABCDEF")
                       == std::string::npos
                   ? strtol(digits.c_str(), nullptr, 16)
                   : -1;
    }

    /* Empty, as no name is, if it is no Unicode. Control characters, which
     * should not be there, are taken as they are. */
    static std::string decoded(const std::string &raw)
    {
        constexpr std::string_view kShort = "\"\\/bfnrt";
        constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";

        std::string text;

        for (size_t i = 0; i < raw.size();) {
            long code = code_unit(raw, i);

            if (raw[i] != '\\') {
                text += raw[i];
                i++;
            } else if (is_in(raw[i + 1], kShort)) {
                text += kMeant[kShort.find(raw[i + 1])];
                i += 2;
            } else if (code < 0) {
                return {};
            } else if (code < 0xd800 || code > 0xdfff) {
                text +=
                    json_reference::encode_utf8(static_cast<uint32_t>(code));
                i += 6;
            } else {
                long second = i + 6 < raw.size() ? code_unit(raw, i + 6) : -1;

                if (code > 0xdbff || second < 0xdc00 || second > 0xdfff) {
                    return {};
                }

                text += json_reference::encode_utf8(static_cast<uint32_t>(
                    0x10000 + (code - 0xd800) * 0x400 + (second - 0xdc00)));
                i += 12;
            }
        }

        return text;
    }

    void number()
    {
        size_t begin = at_;

        while (is_in(peek(), "+-.eE0123456789")) {
            at_++;
        }

        std::string text(text_.substr(begin, at_ - begin));
        auto value = json_reference::read(text);

        if (!value || !is_in(peek(), ",]} \t\r\n")) {
            throw Stop();
        }

        forget();

        for (size_t i = 0; i < paths_.size(); i++) {
            if (paths_[i] == here_ && rounded_up(text) >= 0) {
                found_[i] = rounded_up(text);
            }
        }
    }

    void word()
    {
        size_t begin = at_;

        /* a letter is there before the end of it is known */
        if (is_part_of_word(peek())) {
            forget();
        }

        while (is_part_of_word(peek())) {
            at_++;
        }

        if (at_ == begin) {
            throw Stop();
        }
    }

    static bool is_part_of_word(char ch)
    {
        return is_in(ch, "+-.0123456789abcdefghijklmnopqrstuvwxyz"
                         "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    }

    std::string_view text_;
    const std::vector<Names> &paths_;
    size_t at_ = 0;
    Names here_; /* what leads to the value that is read */
    std::map<size_t, int64_t> found_;
    int64_t last_ = -1; /* of the documents before */
};

/* The data of each event, also of one that is not at its end. */
inline std::vector<std::string> events(std::string_view body)
{
    std::vector<std::string> events(1);
    bool has_data = false;

    while (!body.empty()) {
        size_t size = body.find_first_of("\r\n");
        bool is_complete = size != std::string_view::npos;
        std::string_view line = body.substr(0, size);

        body.remove_prefix(line.size());

        if (is_complete) {
            body.remove_prefix(body.substr(0, 2) == "\r\n" ? 2 : 1);
        }

        if (line.empty()) {
            events.emplace_back();
            has_data = false;
        } else if (line.substr(0, 5) == "data:"
                   || (line == "data" && is_complete)) {
            std::string_view data =
                line.substr(std::min<size_t>(5, line.size()));

            events.back() += has_data ? "\n" : "";
            events.back() += data.substr(!data.empty() && data[0] == ' ');
            has_data = true;
        }
    }

    return events;
}

inline int64_t usage(std::string_view body, const std::vector<Names> &paths,
                     bool is_event_stream)
{
    if (body.substr(0, 3) == "\xef\xbb\xbf") {
        body.remove_prefix(3);
    }

    if (!is_event_stream) {
        return Documents(body, paths).usage(false);
    }

    int64_t last = -1;

    for (const std::string &event : events(body)) {
        int64_t usage = Documents(event, paths).usage(true);

        last = usage < 0 ? last : usage;
    }

    return last;
}

}  // namespace usage_reference
