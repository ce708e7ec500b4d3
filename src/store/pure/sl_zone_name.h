/* Names of zones: what limits are called, in the configuration and in stores.
 */

#pragma once

#include <cstddef>
#include <string_view>

namespace sl {

constexpr size_t kMaxZoneName = 64;

/* [A-Za-z0-9_.-]{1,64} */
bool is_zone_name(std::string_view name) noexcept;

}  // namespace sl
