/*
 * Text of somebody else in JSON, HTML and log lines: whoever reads them by the
 * book gets the text back, and nothing in it ends the string, tag or line.
 */

#include "base/pure/sl_escape.h"

#include <memory>

#include "fuzz.h"
#include "json_reference.h"

namespace {

/* With exactly the room that is promised to be enough. */
std::string escaped(char *(*escape)(std::string_view, char *) noexcept,
                    const std::string &text)
{
    size_t room = text.size() * sl::kLongestEscape;
    auto to = std::make_unique<char[]>(room);

    return {to.get(), escape(text, to.get())};
}

void check_json(const std::string &text)
{
    std::string json = escaped(sl::escape_json, text);
    std::string valid = json_reference::to_utf8(text);
    auto value = json_reference::read("\"" + json + "\"");

    check(value && value->kind == json_reference::Value::kString);
    check(value->text == valid);

    /* it is UTF-8 without control characters */
    check(json_reference::to_utf8(json) == json);

    for (unsigned char ch : json) {
        check(ch >= 0x20 && ch != 0x7f);
    }
}

/* As check_json() has it, but for what could be markup. */
void check_json_without_markup(const std::string &text)
{
    std::string json = escaped(sl::escape_json_without_markup, text);
    auto value = json_reference::read("\"" + json + "\"");

    check(value && value->text == json_reference::to_utf8(text));
    check(json.find_first_of("<>&") == std::string::npos);

    if (text.find_first_of("<>&") == std::string::npos) {
        check(json == escaped(sl::escape_json, text));
    }
}

void replace_all(std::string *text, const std::string &from, char to)
{
    for (size_t at = 0; (at = text->find(from, at)) != std::string::npos; at++)
    {
        text->replace(at, from.size(), 1, to);
    }
}

void check_html(const std::string &text)
{
    std::string html = escaped(sl::escape_html, text);

    check(html.find_first_of("<>\"'") == std::string::npos);

    replace_all(&html, "&lt;", '<');
    replace_all(&html, "&gt;", '>');
    replace_all(&html, "&quot;", '"');
    replace_all(&html, "&#39;", '\'');
    replace_all(&html, "&amp;", '&');
    check(html == text);
}

void check_log(const std::string &text)
{
    std::string line = escaped(sl::escape_log, text);
    std::string read;

    for (size_t i = 0; i < line.size(); i++) {
        check(line[i] >= ' ' && line[i] <= '~' && line[i] != '"');

        if (line[i] == '\\') {
            check(line[i + 1] == 'x');
            read += static_cast<char>(
                std::stoi(line.substr(i + 2, 2), nullptr, 16));
            i += 3;
        } else {
            read += line[i];
        }
    }

    check(read == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    std::string text = Input(data, size).rest();

    check_json(text);
    check_json_without_markup(text);
    check_html(text);
    check_log(text);

    return 0;
}
