/* Letters, digits and words, as HTTP and configuration files have them, and how
 * to write them one after the other. */

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sl {

bool is_letter_or_digit(char ch) noexcept;

/* The value of a hexadecimal digit; -1 if it is none. */
int hex_digit(char ch) noexcept;

/* Whether two words differ in nothing but upper and lower case. */
bool is_same_word(std::string_view a, std::string_view b) noexcept;

/* The size of the variable's name that `text` begins with. */
size_t variable_name_size(std::string_view text) noexcept;

/* Writes `text`, for which there is room; returns the end of it. */
inline char *append(char *to, std::string_view text) noexcept
{
    return std::copy(text.begin(), text.end(), to);
}

/* Writes a byte as two lower-case hexadecimal digits; returns the end of them.
 */
inline char *append_hex(char *to, uint8_t byte) noexcept
{
    constexpr char kDigits[] = "0123456789abcdef";

    *to++ = kDigits[byte >> 4];
    *to++ = kDigits[byte & 0xf];

    return to;
}

}  // namespace sl
