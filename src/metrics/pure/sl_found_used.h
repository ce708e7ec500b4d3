/*
 * How much of max requests find used: the share is what tells whether a max is
 * right, whatever it is.
 */

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sl {

/* A counter for each tenth of max, and one for requests that the limit refuses,
 * or would but for a dry run. */
constexpr std::string_view kFoundUsedNames[] = {
    "0-10",  "10-20", "20-30", "30-40",  "40-50",  "50-60",
    "60-70", "70-80", "80-90", "90-100", "refused"};

constexpr size_t kFoundUsed =
    sizeof(kFoundUsedNames) / sizeof(kFoundUsedNames[0]);

constexpr size_t kFoundRefused = kFoundUsed - 1;
constexpr size_t kTenths = kFoundRefused;

/* For a request of which there is nothing to count. */
constexpr size_t kFoundNothing = kFoundUsed;

/*
 * In which tenth `used` of `max` is. One begins with what belongs to it: 10 of
 * 100 are in the second. All of max, or more, is in the last one.
 */
size_t tenth_of(int64_t used, int64_t max) noexcept;

}  // namespace sl
