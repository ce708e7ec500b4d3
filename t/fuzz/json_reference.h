/*
 * JSON and UTF-8, read by the book (RFC 8259, RFC 3629): what the code under
 * test writes and accepts is compared with this. It shares nothing with it.
 */

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace json_reference {

inline std::string encode_utf8(uint32_t code)
{
    auto byte = [](uint32_t n) {
        return static_cast<char>(n);
    };

    if (code < 0x80) {
        return {byte(code)};
    }

    if (code < 0x800) {
        return {byte(0xc0 | code >> 6), byte(0x80 | (code & 0x3f))};
    }

    if (code < 0x10000) {
        return {byte(0xe0 | code >> 12), byte(0x80 | (code >> 6 & 0x3f)),
                byte(0x80 | (code & 0x3f))};
    }

    return {byte(0xf0 | code >> 18), byte(0x80 | (code >> 12 & 0x3f)),
            byte(0x80 | (code >> 6 & 0x3f)), byte(0x80 | (code & 0x3f))};
}

/* The size of the character that the text begins with: the bytes that encoding
 * some character gives. 0 if there is none. */
inline size_t utf8_size(std::string_view text)
{
    for (size_t size = 1; size <= 4 && size <= text.size(); size++) {
        uint32_t code = static_cast<uint8_t>(text[0]);

        if (size > 1) {
            code &= 0x3fu >> (size - 1);
        }

        for (size_t i = 1; i < size; i++) {
            code = code << 6 | (static_cast<uint8_t>(text[i]) & 0x3f);
        }

        bool is_surrogate = code >= 0xd800 && code <= 0xdfff;

        if (code <= 0x10ffff && !is_surrogate
            && encode_utf8(code) == text.substr(0, size))
        {
            return size;
        }
    }

    return 0;
}

/* The text, with U+FFFD for each byte that belongs to no character. */
inline std::string to_utf8(std::string_view text)
{
    std::string valid;

    while (!text.empty()) {
        size_t size = utf8_size(text);

        valid += size > 0 ? std::string(text.substr(0, size)) : "\xef\xbf\xbd";
        text.remove_prefix(size > 0 ? size : 1);
    }

    return valid;
}

struct Value {
    enum Kind { kWord, kNumber, kString, kArray, kObject };

    Kind kind = kWord;

    /* The word or number as written, or the string itself. */
    std::string text;

    /* Of an array its elements, of an object names and values in turn. */
    std::vector<Value> members;
};

class Reader {
  public:
    Reader(std::string_view text, size_t deepest)
        : text_(text), deepest_(deepest)
    {}

    std::optional<Value> read()
    {
        Value value;

        return read_value(0, &value) && at_ == text_.size()
                   ? std::optional<Value>(value)
                   : std::nullopt;
    }

  private:
    /* NUL at the end; it may stand nowhere in JSON. */
    char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }

    bool take(char wanted)
    {
        bool is_there = at_ < text_.size() && text_[at_] == wanted;

        at_ += is_there ? 1 : 0;

        return is_there;
    }

    void skip_space()
    {
        while (take(' ') || take('\t') || take('\n') || take('\r')) {
        }
    }

    bool read_value(size_t depth, Value *to)
    {
        skip_space();

        bool is_value = depth < deepest_
                        && (next() == '"' ? read_string(to)
                            : next() == '[' || next() == '{'
                                ? read_list(depth, to)
                                : read_word(to) || read_number(to));

        skip_space();

        return is_value;
    }

    bool read_word(Value *to)
    {
        for (std::string_view word : {"true", "false", "null"}) {
            if (text_.substr(at_, word.size()) == word) {
                *to = {Value::kWord, std::string(word), {}};
                at_ += word.size();
                return true;
            }
        }

        return false;
    }

    bool read_digits()
    {
        size_t begin = at_;

        while (next() >= '0' && next() <= '9') {
            at_++;
        }

        return at_ > begin;
    }

    bool read_number(Value *to)
    {
        size_t begin = at_;

        take('-');

        bool is_number = take('0') || read_digits();

        if (is_number && take('.')) {
            is_number = read_digits();
        }

        if (is_number && (take('e') || take('E'))) {
            if (!take('+')) {
                take('-');
            }

            is_number = read_digits();
        }

        *to = {
            Value::kNumber, std::string(text_.substr(begin, at_ - begin)), {}};
        at_ = is_number ? at_ : begin;

        return is_number;
    }

    bool read_hex(uint32_t *code)
    {
        constexpr std::string_view kDigits = "0123456789abcdef0123456789ABCDEF";

        *code = 0;

        for (int i = 0; i < 4; i++, at_++) {
            size_t digit = kDigits.find(next());

            if (at_ >= text_.size() || digit == std::string_view::npos) {
                return false;
            }

            *code = *code << 4 | static_cast<uint32_t>(digit % 16);
        }

        return true;
    }

    /* After the backslash. Half of a pair of surrogates is taken for U+FFFD. */
    bool read_escape(std::string *to)
    {
        constexpr std::string_view kShort = "\"\\/bfnrt";
        constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";

        if (take('u')) {
            uint32_t code;
            uint32_t second;

            if (!read_hex(&code)) {
                return false;
            }

            size_t here = at_;

            if (code >= 0xd800 && code < 0xdc00 && take('\\') && take('u')
                && read_hex(&second) && second >= 0xdc00 && second < 0xe000)
            {
                code = 0x10000 + ((code - 0xd800) << 10) + (second - 0xdc00);
            } else {
                at_ = here;
            }

            *to += encode_utf8(code >= 0xd800 && code < 0xe000 ? 0xfffd : code);

            return true;
        }

        size_t which = at_ < text_.size() ? kShort.find(text_[at_])
                                          : std::string_view::npos;

        if (which == std::string_view::npos) {
            return false;
        }

        *to += kMeant[which];
        at_++;

        return true;
    }

    bool read_string(Value *to)
    {
        if (!take('"')) {
            return false;
        }

        *to = {Value::kString, {}, {}};

        while (!take('"')) {
            if (at_ >= text_.size()
                || static_cast<unsigned char>(text_[at_]) < 0x20) {
                return false;
            }

            if (take('\\')) {
                if (!read_escape(&to->text)) {
                    return false;
                }
            } else {
                to->text += text_[at_++];
            }
        }

        return true;
    }

    bool read_list(size_t depth, Value *to)
    {
        bool is_object = take('{');

        if (!is_object && !take('[')) {
            return false;
        }

        char end = is_object ? '}' : ']';

        *to = {is_object ? Value::kObject : Value::kArray, {}, {}};
        skip_space();

        if (take(end)) {
            return true;
        }

        do {
            Value name;
            Value value;

            if (is_object) {
                skip_space();

                if (!read_string(&name)) {
                    return false;
                }

                skip_space();

                if (!take(':')) {
                    return false;
                }

                to->members.push_back(name);
            }

            if (!read_value(depth + 1, &value)) {
                return false;
            }

            to->members.push_back(value);
        } while (take(','));

        return take(end);
    }

    std::string_view text_;
    size_t deepest_;
    size_t at_ = 0;
};

/* What the text says; nothing if it is no JSON, or one list stands in so many
 * others. */
inline std::optional<Value> read(std::string_view text, size_t deepest = 64)
{
    return Reader(text, deepest).read();
}

}  // namespace json_reference
