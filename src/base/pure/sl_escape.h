/*
 * Text that somebody else wrote, put into an answer or a log line in such a way
 * that it stays text.
 */

#pragma once

#include <cstddef>
#include <initializer_list>
#include <string_view>

namespace sl {

/* What becomes of one byte is never longer than this. */
constexpr size_t kLongestEscape = 6;

/*
 * Each of these writes to `to`, which has room for kLongestEscape times the
 * size of `text`, and returns where it ended.
 *
 * escape_json: for between the quotes of a JSON string. Bytes that are not
 * UTF-8 become U+FFFD, because JSON has no other bytes.
 * escape_json_without_markup: the same, and no browser ever takes it for
 * markup, whatever type it believes in.
 * escape_html: for HTML and XML, between tags or in a quoted attribute.
 * escape_log: for between quotes in a log line. Quotes, backslashes and all
 * that is not printable ASCII become \xXX.
 */
char *escape_json(std::string_view text, char *to) noexcept;
char *escape_json_without_markup(std::string_view text, char *to) noexcept;
char *escape_html(std::string_view text, char *to) noexcept;
char *escape_log(std::string_view text, char *to) noexcept;

/*
 * Copies `text`, with "***" wherever one of the secrets stands in it, to `to`,
 * which has room for `room` bytes: the rest is cut off. Returns the size.
 */
size_t mask_secrets(std::string_view text,
                    std::initializer_list<std::string_view> secrets, char *to,
                    size_t room) noexcept;

}  // namespace sl
