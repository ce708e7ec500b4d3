/* Letters, digits and words, as HTTP and configuration files have them. */

#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace sl {

bool is_letter_or_digit(char ch) noexcept;

/* Upper and lower case are the same. */
bool is_same_word(std::string_view a, std::string_view b) noexcept;

/* Size of the variable's name that `text` begins with. */
size_t variable_name_size(std::string_view text) noexcept;

/* Writes `text`, for which there is room; returns the end of it. */
inline char *append(char *to, std::string_view text) noexcept
{
    return std::copy(text.begin(), text.end(), to);
}

}  // namespace sl
