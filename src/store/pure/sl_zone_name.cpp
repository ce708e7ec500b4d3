#include "store/pure/sl_zone_name.h"

#include <algorithm>

#include "base/pure/sl_words.h"

namespace sl {

bool is_zone_name(std::string_view name) noexcept
{
    return !name.empty() && name.size() <= kMaxZoneName
           && std::all_of(name.begin(), name.end(), [](char ch) {
                  return is_letter_or_digit(ch) || ch == '_' || ch == '.'
                         || ch == '-';
              });
}

}  // namespace sl
