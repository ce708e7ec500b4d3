/*
 * Templates of bodies, with values that clients have chosen. A template that is
 * accepted stays what it is: JSON of the same shape, markup with the same tags.
 */

#include "answer/pure/sl_body_template.h"

#include <memory>
#include <vector>

#include "fuzz.h"
#include "json_reference.h"

namespace {

using sl::BodyEscape;
using sl::TemplatePart;

/* The parts of a template; none if it is not right. */
std::vector<TemplatePart> read_parts(const std::string &text, BodyEscape escape)
{
    sl::TemplateReader reader(text, escape);
    std::vector<TemplatePart> parts;
    TemplatePart part;

    while (reader.next(&part)) {
        parts.push_back(part);
    }

    check(!reader.next(&part));

    return reader.error() == nullptr ? parts : std::vector<TemplatePart>();
}

/* Nothing of the template is lost. */
void check_parts(const std::string &text,
                 const std::vector<TemplatePart> &parts)
{
    std::string_view rest = text;

    auto take = [&rest](std::string_view wanted) {
        check(rest.substr(0, wanted.size()) == wanted);
        rest.remove_prefix(wanted.size());
    };

    for (const TemplatePart &part : parts) {
        take(part.text);

        if (!part.variable.empty()) {
            bool is_braced = rest.substr(0, 2) == "${";

            take(is_braced ? "${" : "$");
            take(part.variable);
            take(is_braced ? "}" : "");
        }
    }

    check(rest.empty());
}

/* With exactly the room that is promised to be enough. */
std::string written(BodyEscape escape, bool is_quoted, const std::string &value)
{
    size_t room = sl::room_for_value(value.size());
    auto to = std::make_unique<char[]>(room);

    return {to.get(), sl::write_value(escape, is_quoted, value, to.get())};
}

std::string fill(const std::vector<TemplatePart> &parts, BodyEscape escape,
                 const std::vector<std::string> &values)
{
    std::string body;
    size_t next = 0;

    for (const TemplatePart &part : parts) {
        body += std::string(part.text);

        if (!part.variable.empty()) {
            body +=
                written(escape, part.is_quoted, values[next++ % values.size()]);
        }
    }

    return body;
}

/* What a value cannot change: lists, and how many members they have. */
std::string shape(const json_reference::Value &value)
{
    std::string text = value.kind == json_reference::Value::kArray    ? "["
                       : value.kind == json_reference::Value::kObject ? "{"
                                                                      : ".";

    for (const auto &member : value.members) {
        text += shape(member);
    }

    return text + ",";
}

void check_json(const std::string &text, const std::vector<TemplatePart> &parts,
                const std::vector<std::string> &values)
{
    auto memory = std::make_unique<char[]>(sl::room_for_json_check(text));
    auto empty = json_reference::read(fill(parts, BodyEscape::kJson, {""}));

    check(sl::is_json_template(text, memory.get()) == empty.has_value());

    if (empty) {
        std::string body = fill(parts, BodyEscape::kJson, values);
        auto filled = json_reference::read(body);

        check(filled && shape(*filled) == shape(*empty));

        if (json_reference::to_utf8(text) == text) {
            check(json_reference::to_utf8(body) == body);
        }
    }

    for (const std::string &value : values) {
        auto read =
            json_reference::read(written(BodyEscape::kJson, false, value));

        check(
            read
            && (value.empty() || read->text == json_reference::to_utf8(value)));
    }
}

void check_html(const std::vector<TemplatePart> &parts,
                const std::vector<std::string> &values)
{
    auto tags = [](std::string text) {
        size_t end = 0;

        for (char ch : text) {
            if (ch == '<' || ch == '>' || ch == '"' || ch == '\'') {
                text[end++] = ch;
            }
        }

        return text.substr(0, end);
    };

    check(tags(fill(parts, BodyEscape::kHtml, values))
          == tags(fill(parts, BodyEscape::kHtml, {""})));
}

/* What is accepted as a media type cannot end the header it stands in. */
void check_media_type(const std::string &text)
{
    if (sl::is_media_type(text)) {
        check(text.find('/') != std::string::npos);
        check(text.find_first_of(std::string("\r\n\0", 3))
              == std::string::npos);
    }

    check(sl::escape_for(text) == sl::escape_for(text + ";charset=utf-8"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Input input(data, size);
    std::string text = input.text_before('\0');
    std::vector<std::string> values;

    do {
        values.push_back(input.text_before('\0'));
    } while (!input.is_empty());

    check_media_type(text);

    for (BodyEscape escape :
         {BodyEscape::kNone, BodyEscape::kJson, BodyEscape::kHtml})
    {
        std::vector<TemplatePart> parts = read_parts(text, escape);

        if (parts.empty()) {
            continue;
        }

        check_parts(text, parts);

        if (escape == BodyEscape::kJson) {
            check_json(text, parts, values);
        } else if (escape == BodyEscape::kHtml) {
            check_html(parts, values);
        }
    }

    return 0;
}
