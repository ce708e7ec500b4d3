#include "base/pure/sl_number.h"

#include <charconv>
#include <system_error>

namespace sl {

int64_t parse_count(std::string_view text) noexcept
{
    const char *end = text.data() + text.size();
    uint64_t number;
    auto [read_to, error] = std::from_chars(text.data(), end, number);

    return error == std::errc() && read_to == end && number <= kLargestCount
               ? static_cast<int64_t>(number)
               : -1;
}

char *write_number(char *to, int64_t number) noexcept
{
    return std::to_chars(to, to + kMaxDigits, number).ptr;
}

}  // namespace sl
