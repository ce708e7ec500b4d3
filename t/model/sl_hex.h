/* Bytes as hex digits, in which others hand them over. */

#pragma once

#include <cstdint>
#include <string>

#include "base/pure/sl_words.h"

namespace sl {

inline std::string from_hex(const std::string &hex)
{
    std::string text;

    for (size_t i = 0; i + 1 < hex.size(); i += 2) {
        text +=
            static_cast<char>(hex_digit(hex[i]) * 16 + hex_digit(hex[i + 1]));
    }

    return text;
}

inline std::string to_hex(const std::string &text)
{
    std::string hex(2 * text.size(), '\0');
    char *to = hex.data();

    for (char ch : text) {
        to = append_hex(to, static_cast<uint8_t>(ch));
    }

    return hex;
}

}  // namespace sl
