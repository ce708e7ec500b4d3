/*
 * What the module's code says about texts, for t/json.t, which asks others the
 * same. In: a text per line, as hex digits. Out, per line: whether it is JSON,
 * whether it is a number, and the text between the quotes of a JSON string, as
 * hex digits, also without markup.
 */

#include <cstdio>
#include <iostream>
#include <string>

#include "base/pure/sl_escape.h"
#include "base/pure/sl_json.h"
#include "sl_hex.h"

namespace {

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
        std::string text = sl::from_hex(line);

        printf(
            "%d %d %s %s\n", sl::is_json(text), sl::is_json_number(text),
            sl::to_hex(escaped(sl::escape_json, text)).c_str(),
            sl::to_hex(escaped(sl::escape_json_without_markup, text)).c_str());
    }

    return 0;
}
