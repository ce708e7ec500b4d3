/* Whole numbers as users and variables write them. */

#pragma once

#include <cstdint>
#include <string_view>

namespace sl {

/* The largest max and cost. */
constexpr int64_t kLargestCount = 2147483647;

/* Digits and nothing else, from 0 to kLargestCount; -1 if it is not that. */
int64_t parse_count(std::string_view text) noexcept;

}  // namespace sl
