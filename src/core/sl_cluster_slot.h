/* In which of a Redis Cluster's slots a key is. */

#pragma once

#include <string_view>

namespace sl {

constexpr unsigned kClusterSlots = 16384;

/* Of what stands between the first braces, if anything does. */
unsigned cluster_slot(std::string_view key) noexcept;

}  // namespace sl
