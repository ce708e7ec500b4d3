/* Whole numbers as users and variables write them. */

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sl {

/* The largest max and the largest cost that a limit can have: enough for bytes
 * and tokens, and a sum of several is exact even where numbers are doubles. */
constexpr int64_t kLargestCount = 1000000000000000;

/* The number that `text` is: digits and nothing else, from 0 to kLargestCount.
 * -1 if it is something else. */
int64_t parse_count(std::string_view text) noexcept;

/* Writes a number, of at most kMaxDigits characters; returns the end of it. */
constexpr size_t kMaxDigits = 20;
char *write_number(char *to, int64_t number) noexcept;

}  // namespace sl
