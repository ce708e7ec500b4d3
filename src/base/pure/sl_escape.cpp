#include "base/pure/sl_escape.h"

#include "base/pure/sl_words.h"

namespace sl {

namespace {

/*
 * Length of the UTF-8 character that `text` begins with; 0 if it does not
 * begin with one (overlong forms, surrogates and what is past U+10FFFF are
 * none).
 */
size_t utf8_length(std::string_view text)
{
    auto byte = [&](size_t i) {
        return static_cast<unsigned char>(text[i]);
    };

    unsigned char first = byte(0);
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    size_t length;

    if (first < 0x80) {
        return 1;
    }

    if (first >= 0xc2 && first <= 0xdf) {
        length = 2;

    } else if (first >= 0xe0 && first <= 0xef) {
        length = 3;
        low = first == 0xe0 ? 0xa0 : low;
        high = first == 0xed ? 0x9f : high;

    } else if (first >= 0xf0 && first <= 0xf4) {
        length = 4;
        low = first == 0xf0 ? 0x90 : low;
        high = first == 0xf4 ? 0x8f : high;

    } else {
        return 0;
    }

    if (text.size() < length || byte(1) < low || byte(1) > high) {
        return 0;
    }

    for (size_t i = 2; i < length; i++) {
        if (byte(i) < 0x80 || byte(i) > 0xbf) {
            return 0;
        }
    }

    return length;
}

/* For between the quotes of a JSON string, with the characters of `also`
 * escaped though JSON would take them. */
char *escape_json_and(std::string_view also, std::string_view text, char *to)
{
    while (!text.empty()) {
        auto ch = static_cast<unsigned char>(text[0]);
        size_t length = utf8_length(text);

        if (ch == '"' || ch == '\\') {
            *to++ = '\\';
            *to++ = static_cast<char>(ch);

        } else if (ch < 0x20 || ch == 0x7f
                   || also.find(text[0]) != std::string_view::npos)
        {
            to = append_hex(append(to, "\\u00"), ch);

        } else if (length == 0) {
            to = append(to, "\\ufffd");
            length = 1;

        } else {
            to = append(to, text.substr(0, length));
        }

        text.remove_prefix(length);
    }

    return to;
}

}  // namespace

char *escape_json(std::string_view text, char *to) noexcept
{
    return escape_json_and("", text, to);
}

char *escape_json_without_markup(std::string_view text, char *to) noexcept
{
    return escape_json_and("<>&", text, to);
}

char *escape_html(std::string_view text, char *to) noexcept
{
    for (char ch : text) {
        switch (ch) {
        case '<':
            to = append(to, "&lt;");
            break;
        case '>':
            to = append(to, "&gt;");
            break;
        case '&':
            to = append(to, "&amp;");
            break;
        case '"':
            to = append(to, "&quot;");
            break;
        case '\'':
            to = append(to, "&#39;");
            break;
        default:
            *to++ = ch;
        }
    }

    return to;
}

char *escape_log(std::string_view text, char *to) noexcept
{
    for (char c : text) {
        auto ch = static_cast<unsigned char>(c);

        if (ch >= 0x20 && ch < 0x7f && ch != '"' && ch != '\\') {
            *to++ = c;
            continue;
        }

        to = append_hex(append(to, "\\x"), ch);
    }

    return to;
}

size_t mask_secrets(std::string_view text,
                    std::initializer_list<std::string_view> secrets, char *to,
                    size_t room) noexcept
{
    size_t size = 0;

    /* the size of the longest secret that the rest of the text begins with */
    auto secret_size = [&] {
        size_t longest = 0;

        for (std::string_view secret : secrets) {
            if (secret.size() > longest
                && text.substr(0, secret.size()) == secret) {
                longest = secret.size();
            }
        }

        return longest;
    };

    while (!text.empty() && size < room) {
        size_t hidden = secret_size();
        std::string_view shown = hidden > 0 ? "***" : text.substr(0, 1);

        size += shown.copy(to + size, room - size);
        text.remove_prefix(hidden > 0 ? hidden : 1);
    }

    return size;
}

}  // namespace sl
