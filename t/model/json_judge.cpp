/*
 * What the module's code says about texts, for t/json.t, which asks others the
 * same. In: a text per line, as hex digits. Out, per line: whether it is JSON,
 * whether it is a number, and the text between the quotes of a JSON string, as
 * hex digits, also without markup.
 */

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>

#include "base/pure/sl_escape.h"
#include "base/pure/sl_json.h"
#include "base/pure/sl_words.h"

namespace {

std::string from_hex(const std::string &hex)
{
    std::string text;

    for (size_t i = 0; i + 1 < hex.size(); i += 2) {
        text += static_cast<char>(sl::hex_digit(hex[i]) * 16
                                  + sl::hex_digit(hex[i + 1]));
    }

    return text;
}

std::string to_hex(const std::string &text)
{
    std::string hex(2 * text.size(), '\0');
    char *to = hex.data();

    for (char ch : text) {
        to = sl::append_hex(to, static_cast<uint8_t>(ch));
    }

    return hex;
}

std::string escaped(char *(*escape)(std::string_view, char *) noexcept,
                    const std::string &text)
{
    std::string to(text.size() * sl::kLongestEscape, '\0');

    to.resize(static_cast<size_t>(escape(text, to.data()) - to.data()));

    return to;
}

}  // namespace

int main()
{
    std::string line;

    while (std::getline(std::cin, line)) {
        std::string text = from_hex(line);

        printf("%d %d %s %s\n", sl::is_json(text), sl::is_json_number(text),
               to_hex(escaped(sl::escape_json, text)).c_str(),
               to_hex(escaped(sl::escape_json_without_markup, text)).c_str());
    }

    return 0;
}
