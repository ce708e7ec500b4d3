#include "redis/pure/sl_scan_place.h"

#include "base/pure/sl_number.h"
#include "redis/pure/sl_cluster_slot.h"

namespace sl {

namespace {

/* As numbers are written: without zeros in front. */
bool are_digits(std::string_view text)
{
    return !text.empty()
           && text.find_first_not_of("0123456789") == std::string_view::npos
           && (text[0] != '0' || text.size() == 1);
}

}  // namespace

bool ScanPlace::set_cursor(std::string_view text) noexcept
{
    constexpr std::string_view kLargest = "18446744073709551615";

    if (!are_digits(text) || text.size() > kMaxCursor
        || (text.size() == kMaxCursor && text > kLargest))
    {
        return false;
    }

    cursor_size = text.copy(cursor_text, sizeof(cursor_text));

    return true;
}

bool ScanPlace::parse(std::string_view text) noexcept
{
    *this = ScanPlace();

    if (text.empty()) {
        return true;
    }

    size_t dot = text.find('.');

    if (dot == text.npos || !are_digits(text.substr(0, dot))) {
        return false;
    }

    int64_t number = parse_count(text.substr(0, dot));

    if (number < 0 || number >= static_cast<int64_t>(kClusterSlots)) {
        return false;
    }

    slot = static_cast<unsigned>(number);

    return set_cursor(text.substr(dot + 1));
}

size_t ScanPlace::write(char *to) const noexcept
{
    char *end = write_number(to, slot);

    *end++ = '.';
    end += cursor().copy(end, cursor_size);

    return static_cast<size_t>(end - to);
}

}  // namespace sl
