#include "base/pure/sl_words.h"

namespace sl {

namespace {

char to_lower(char ch)
{
    return ch >= 'A' && ch <= 'Z' ? static_cast<char>(ch | 0x20) : ch;
}

}  // namespace

bool is_letter_or_digit(char ch) noexcept
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z')
           || (ch >= '0' && ch <= '9');
}

int hex_digit(char ch) noexcept
{
    if (ch >= '0' && ch <= '9') {
        return ch - '0';
    }

    ch = to_lower(ch);

    return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

bool is_same_word(std::string_view a, std::string_view b) noexcept
{
    return std::equal(
        a.begin(), a.end(), b.begin(), b.end(),
        [](char x, char y) { return to_lower(x) == to_lower(y); });
}

size_t variable_name_size(std::string_view text) noexcept
{
    auto end = std::find_if(text.begin(), text.end(), [](char ch) {
        return !is_letter_or_digit(ch) && ch != '_';
    });

    return static_cast<size_t>(end - text.begin());
}

}  // namespace sl
