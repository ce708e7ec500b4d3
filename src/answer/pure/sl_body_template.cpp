#include "answer/pure/sl_body_template.h"

#include "base/pure/sl_json.h"
#include "base/pure/sl_words.h"

namespace sl {

namespace {

/* What stands for a variable that holds nothing, outside of quotes. */
constexpr std::string_view kNull = "null";

bool ends_with(std::string_view text, std::string_view end)
{
    return text.size() >= end.size()
           && is_same_word(text.substr(text.size() - end.size()), end);
}

/* The type/subtype, without the parameters that may follow it. */
std::string_view essence(std::string_view type)
{
    return type.substr(0, type.find(';'));
}

/* Outside of quotes JSON needs a value, whatever the variable holds. */
char *write_json_value(std::string_view value, char *to)
{
    if (value.empty()) {
        return append(to, kNull);
    }

    if (is_json_number(value) || value == "true" || value == "false") {
        return append(to, value);
    }

    *to++ = '"';
    to = escape_json(value, to);
    *to++ = '"';

    return to;
}

}  // namespace

bool is_media_type(std::string_view text) noexcept
{
    std::string_view type = essence(text);
    size_t slash = type.find('/');

    if (slash == 0 || slash == std::string_view::npos
        || slash + 1 == type.size()) {
        return false;
    }

    for (size_t i = 0; i < type.size(); i++) {
        if (i != slash && !is_letter_or_digit(type[i])
            && std::string_view("!#&-^_.+").find(type[i])
                   == std::string_view::npos)
        {
            return false;
        }
    }

    /* there must be nothing in it that could end the header */
    for (unsigned char ch : text) {
        if (ch < 0x20 || ch >= 0x7f) {
            return false;
        }
    }

    return true;
}

BodyEscape escape_for(std::string_view media_type) noexcept
{
    std::string_view type = essence(media_type);

    if (is_same_word(type, "application/json")
        || is_same_word(type, "text/json") || ends_with(type, "+json"))
    {
        return BodyEscape::kJson;
    }

    if (is_same_word(type, "text/html") || is_same_word(type, "text/xml")
        || is_same_word(type, "application/xml") || ends_with(type, "+xml"))
    {
        return BodyEscape::kHtml;
    }

    return BodyEscape::kNone;
}

bool TemplateReader::next(TemplatePart *part) noexcept
{
    if (is_over_) {
        return false;
    }

    *part = {rest_.substr(0, rest_.find('$')), {}, false};

    if (escape_ == BodyEscape::kJson && !follow_quotes(part->text)) {
        return refuse("an escape is not complete", rest_);
    }

    part->is_quoted = is_quoted_;
    rest_.remove_prefix(part->text.size());

    if (!rest_.empty() && !read_variable(&part->variable)) {
        return false;
    }

    is_over_ = rest_.empty();

    return !is_over_ || !is_quoted_ || refuse("a quote is not closed", given_);
}

/* Reads $name or ${name}. */
bool TemplateReader::read_variable(std::string_view *name) noexcept
{
    std::string_view from = rest_;
    bool braced = rest_.substr(0, 2) == "${";

    rest_.remove_prefix(braced ? 2 : 1);
    *name = rest_.substr(0, variable_name_size(rest_));

    if (name->empty()) {
        return refuse("no name follows the \"$\"", from);
    }

    rest_.remove_prefix(name->size());

    if (braced && rest_.substr(0, 1) != "}") {
        return refuse("no \"}\" follows the name", from);
    }

    rest_.remove_prefix(braced ? 1 : 0);

    return true;
}

/*
 * Finds out whether what follows the text stands in a JSON string. False if it
 * would stand in an escape, where no value is safe.
 */
bool TemplateReader::follow_quotes(std::string_view text) noexcept
{
    for (size_t i = 0; i < text.size(); i++) {
        if (text[i] == '"') {
            is_quoted_ = !is_quoted_;

        } else if (is_quoted_ && text[i] == '\\') {
            i += text.substr(i + 1, 1) == "u" ? 5 : 1;

            if (i >= text.size()) {
                return false;
            }
        }
    }

    return true;
}

bool TemplateReader::refuse(const char *what, std::string_view at) noexcept
{
    error_ = what;
    error_at_ = at;
    is_over_ = true;

    return false;
}

bool is_json_template(std::string_view text, char *memory) noexcept
{
    TemplateReader reader(text, BodyEscape::kJson);
    TemplatePart part;
    char *p = memory;

    while (reader.next(&part)) {
        p = append(p, part.text);

        if (!part.variable.empty()) {
            p = append(p, part.is_quoted ? std::string_view() : kNull);
        }
    }

    return is_json({memory, static_cast<size_t>(p - memory)});
}

char *write_value(BodyEscape escape, bool is_quoted, std::string_view value,
                  char *to) noexcept
{
    switch (escape) {
    case BodyEscape::kJson:
        return is_quoted ? escape_json(value, to) : write_json_value(value, to);
    case BodyEscape::kHtml:
        return escape_html(value, to);
    case BodyEscape::kNone:
        break;
    }

    return append(to, value);
}

}  // namespace sl
