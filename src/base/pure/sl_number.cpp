#include "base/pure/sl_number.h"

#include <charconv>

namespace sl {

int64_t parse_count(std::string_view text) noexcept
{
    int64_t n = 0;

    for (char ch : text) {
        if (ch < '0' || ch > '9') {
            return -1;
        }

        n = n * 10 + (ch - '0');

        if (n > kLargestCount) {
            return -1;
        }
    }

    return text.empty() ? -1 : n;
}

char *write_number(char *to, int64_t number) noexcept
{
    return std::to_chars(to, to + kMaxDigits, number).ptr;
}

}  // namespace sl
