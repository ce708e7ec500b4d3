/* Numbers, names and words, as users and variables write them. */

#include "base/pure/sl_words.h"

#include <cctype>

#include "base/pure/sl_number.h"
#include "fuzz.h"
#include "store/pure/sl_zone_name.h"

namespace {

constexpr std::string_view kLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr std::string_view kDigits = "0123456789";

bool is_in(char ch, std::string_view signs)
{
    return signs.find(ch) != std::string_view::npos;
}

bool is_made_of(const std::string &text, const std::string &signs)
{
    return text.find_first_not_of(signs) == std::string::npos;
}

int64_t count_of(const std::string &text)
{
    if (text.empty() || !is_made_of(text, std::string(kDigits))) {
        return -1;
    }

    std::string digits =
        text.substr(std::min(text.find_first_not_of('0'), text.size() - 1));
    int64_t number = digits.size() > 16 ? -1 : std::stoll(digits);

    return number > sl::kLargestCount ? -1 : number;
}

void check_number(int64_t number)
{
    char text[sl::kMaxDigits];
    std::string written(text, sl::write_number(text, number));

    check(written == std::to_string(number));
    check(sl::parse_count(written)
          == (number >= 0 && number <= sl::kLargestCount ? number : -1));
}

void check_same_word(const std::string &a, const std::string &b)
{
    bool is_same = a.size() == b.size();

    for (size_t i = 0; is_same && i < a.size(); i++) {
        is_same = a[i] == b[i]
                  || (is_in(a[i], kLetters) && is_in(b[i], kLetters)
                      && tolower(a[i]) == tolower(b[i]));
    }

    check(sl::is_same_word(a, b) == is_same);
    check(sl::is_same_word(b, a) == is_same);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Input input(data, size);

    check_number(input.number<int64_t>());

    std::string a = input.text_before('\n');
    std::string b = input.rest();
    std::string letters_and_digits =
        std::string(kLetters) + std::string(kDigits);

    check_same_word(a, b);
    check(sl::parse_count(a) == count_of(a));
    check(sl::is_zone_name(a)
          == (!a.empty() && a.size() <= 64
              && is_made_of(a, letters_and_digits + "_.-")));
    check(sl::variable_name_size(a)
          == std::min(a.find_first_not_of(letters_and_digits + "_"), a.size()));

    for (char ch : a) {
        check(sl::is_letter_or_digit(ch) == is_in(ch, letters_and_digits));

        if (is_in(ch, "0123456789abcdefABCDEF")) {
            check(sl::hex_digit(ch)
                  == std::stoi(std::string(1, ch), nullptr, 16));
        } else {
            check(sl::hex_digit(ch) == -1);
        }
    }

    return 0;
}
