#include "base/pure/sl_json.h"

#include <cstddef>

#include "base/pure/sl_words.h"

namespace sl {

namespace {

/* The reader calls itself for what is nested, and nobody nests deeper by hand.
 */
constexpr unsigned kDeepest = 64;

size_t count_digits(std::string_view text)
{
    size_t n = 0;

    while (n < text.size() && text[n] >= '0' && text[n] <= '9') {
        n++;
    }

    return n;
}

/* Each function reads what it is named after, and says whether it was there. */
class JsonReader {
  public:
    explicit JsonReader(std::string_view text) : rest_(text), depth_(0) {}

    bool document() { return value() && rest_.empty(); }

  private:
    bool value()
    {
        white_space();

        bool ok = depth_ < kDeepest && !rest_.empty() && value_proper();

        white_space();

        return ok;
    }

    bool value_proper()
    {
        switch (rest_[0]) {
        case '{':
            return object();
        case '[':
            return array();
        case '"':
            return string();
        case 't':
            return word("true");
        case 'f':
            return word("false");
        case 'n':
            return word("null");
        default:
            return number();
        }
    }

    bool object()
    {
        return list('{', '}', [this] {
            white_space();

            if (!string()) {
                return false;
            }

            white_space();

            return word(":") && value();
        });
    }

    bool array()
    {
        return list('[', ']', [this] { return value(); });
    }

    template <typename Item>
    bool list(char open, char close, Item item)
    {
        if (!word({&open, 1})) {
            return false;
        }

        depth_++;
        white_space();

        if (!word({&close, 1})) {
            do {
                if (!item()) {
                    return false;
                }
            } while (word(","));

            if (!word({&close, 1})) {
                return false;
            }
        }

        depth_--;

        return true;
    }

    bool string()
    {
        if (!word("\"")) {
            return false;
        }

        while (!rest_.empty() && rest_[0] != '"') {
            if (static_cast<unsigned char>(rest_[0]) < 0x20
                || (rest_[0] == '\\' && !escape()))
            {
                return false;
            }

            rest_.remove_prefix(1);
        }

        return word("\"");
    }

    /* Reads an escape sequence but for its last character. */
    bool escape()
    {
        rest_.remove_prefix(1);

        if (rest_.empty()) {
            return false;
        }

        if (rest_[0] != 'u') {
            return std::string_view("\"\\/bfnrt").find(rest_[0])
                   != std::string_view::npos;
        }

        for (size_t i = 1; i <= 4; i++) {
            if (i >= rest_.size() || hex_digit(rest_[i]) < 0) {
                return false;
            }
        }

        rest_.remove_prefix(4);

        return true;
    }

    bool number()
    {
        size_t size = 0;

        while (size < rest_.size()
               && std::string_view("+-.0123456789eE").find(rest_[size])
                      != std::string_view::npos)
        {
            size++;
        }

        std::string_view text = rest_.substr(0, size);
        size_t e = text.find_first_of("eE");

        if (!is_json_number(text.substr(0, e))
            || (e != std::string_view::npos && !exponent(text.substr(e + 1))))
        {
            return false;
        }

        rest_.remove_prefix(size);

        return true;
    }

    static bool exponent(std::string_view text)
    {
        if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
            text.remove_prefix(1);
        }

        return !text.empty() && count_digits(text) == text.size();
    }

    bool word(std::string_view text)
    {
        if (rest_.substr(0, text.size()) != text) {
            return false;
        }

        rest_.remove_prefix(text.size());

        return true;
    }

    void white_space()
    {
        while (!rest_.empty()
               && std::string_view(" \t\r\n").find(rest_[0])
                      != std::string_view::npos)
        {
            rest_.remove_prefix(1);
        }
    }

    std::string_view rest_;
    unsigned depth_;
};

}  // namespace

bool is_json(std::string_view text) noexcept
{
    return JsonReader(text).document();
}

bool is_json_number(std::string_view text) noexcept
{
    if (!text.empty() && text[0] == '-') {
        text.remove_prefix(1);
    }

    size_t whole = count_digits(text);

    if (whole == 0 || (whole > 1 && text[0] == '0')) {
        return false;
    }

    text.remove_prefix(whole);

    return text.empty()
           || (text[0] == '.' && text.size() > 1
               && count_digits(text.substr(1)) == text.size() - 1);
}

}  // namespace sl
