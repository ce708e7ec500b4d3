/*
 * Templates of bodies: a text with variables in it, whose values are escaped as
 * its media type demands. Whatever they hold, JSON stays JSON, and no value
 * becomes markup.
 */

#pragma once

#include <cstddef>
#include <string_view>

#include "base/pure/sl_escape.h"

namespace sl {

enum class BodyEscape { kNone, kJson, kHtml };

/* Whether `text` is type/subtype, with parameters or not, as a header may have
 * it. */
bool is_media_type(std::string_view text) noexcept;

BodyEscape escape_for(std::string_view media_type) noexcept;

/* Text as it stands, and the variable that follows it. */
struct TemplatePart {
    std::string_view text;
    std::string_view variable; /* its name; empty: none follows */
    bool is_quoted;            /* it stands in a JSON string */
};

/* Splits a template at its variables, $name or ${name}. */
class TemplateReader {
  public:
    TemplateReader(std::string_view text, BodyEscape escape) noexcept
        : given_(text), rest_(text), escape_(escape)
    {}

    /* Reads the next part. False if there is none left, or if it is not right:
     * then error() says why. */
    bool next(TemplatePart *part) noexcept;

    /* What is wrong, in words, and with which part of the template it begins;
     * nullptr: nothing. */
    const char *error() const noexcept { return error_; }
    std::string_view error_at() const noexcept { return error_at_; }

  private:
    bool read_variable(std::string_view *name) noexcept;
    bool follow_quotes(std::string_view text) noexcept;
    bool refuse(const char *what, std::string_view at) noexcept;

    std::string_view given_;
    std::string_view rest_;
    BodyEscape escape_;
    const char *error_ = nullptr;
    std::string_view error_at_;
    bool is_quoted_ = false;
    bool is_over_ = false;
};

/*
 * Whether a template that is right otherwise is JSON when its variables have
 * values. `memory` has room for room_for_json_check() bytes.
 */
bool is_json_template(std::string_view text, char *memory) noexcept;

constexpr size_t room_for_json_check(std::string_view text)
{
    return 2 * text.size();
}

/* Writes a variable's value; returns where it ended. `to` has room for
 * room_for_value() bytes. */
char *write_value(BodyEscape escape, bool is_quoted, std::string_view value,
                  char *to) noexcept;

constexpr size_t room_for_value(size_t size)
{
    constexpr size_t kQuotesOrNull = 4;

    return kQuotesOrNull + size * kLongestEscape;
}

}  // namespace sl
