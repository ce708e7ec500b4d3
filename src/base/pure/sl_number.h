/* Whole numbers as users and variables write them. */

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sl {

/* The largest max and cost. */
constexpr int64_t kLargestCount = 2147483647;

/* Digits and nothing else, from 0 to kLargestCount; -1 if it is not that. */
int64_t parse_count(std::string_view text) noexcept;

/* Writes it out, and returns where it ended; at most kMaxDigits. */
constexpr size_t kMaxDigits = 20;
char *write_number(char *to, int64_t number) noexcept;

}  // namespace sl
