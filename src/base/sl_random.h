/* Random bytes that differ between workers and servers. */

#pragma once

#include <cstddef>
#include <cstdint>

namespace sl {

/* `size` is at most 256. */
void random_bytes(uint8_t *to, size_t size) noexcept;

}  // namespace sl
