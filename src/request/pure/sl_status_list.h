/* A set of HTTP statuses, written like 401,403,5xx. */

#pragma once

#include <cstdint>
#include <string_view>

namespace sl {

class StatusList {
  public:
    /*
     * Adds what `text` lists: statuses from 100 to 599, or 1xx to 5xx for all
     * of a class. False if it is not such a list.
     */
    bool read(std::string_view text) noexcept;

    bool contains(unsigned status) const noexcept
    {
        return status >= kFirst && status <= kLast && is_in_[status - kFirst];
    }

  private:
    static constexpr unsigned kFirst = 100;
    static constexpr unsigned kLast = 599;

    bool read_one(std::string_view text) noexcept;

    bool is_in_[kLast - kFirst + 1] = {};
};

}  // namespace sl
