#include "request/pure/sl_status_list.h"

namespace sl {

bool StatusList::read(std::string_view text) noexcept
{
    for (;;) {
        size_t comma = text.find(',');

        if (!read_one(text.substr(0, comma))) {
            return false;
        }

        if (comma == std::string_view::npos) {
            return true;
        }

        text.remove_prefix(comma + 1);
    }
}

bool StatusList::read_one(std::string_view text) noexcept
{
    auto is_digit = [](char ch) {
        return ch >= '0' && ch <= '9';
    };

    if (text.size() != 3 || text[0] < '1' || text[0] > '5') {
        return false;
    }

    bool is_class = text.substr(1) == "xx";

    if (!is_class && !(is_digit(text[1]) && is_digit(text[2]))) {
        return false;
    }

    unsigned first = static_cast<unsigned>(text[0] - '0') * 100;
    unsigned last = first + 99;

    if (!is_class) {
        first += static_cast<unsigned>((text[1] - '0') * 10 + (text[2] - '0'));
        last = first;
    }

    for (unsigned status = first; status <= last; status++) {
        is_in_[status - kFirst] = true;
    }

    return true;
}

}  // namespace sl
