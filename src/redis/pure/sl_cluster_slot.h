/* In which of a Redis Cluster's slots a key is. */

#pragma once

#include <string_view>

namespace sl {

constexpr unsigned kClusterSlots = 16384;

/* The slot of what stands between the first braces, if anything does, and else
 * of the whole key. */
unsigned cluster_slot(std::string_view key) noexcept;

/* A text that, in the braces of a key, puts the key into a certain slot. */
struct SlotTag {
    char text[4];

    std::string_view view() const noexcept { return {text, sizeof(text)}; }
};

SlotTag tag_of_slot(unsigned slot) noexcept;

}  // namespace sl
