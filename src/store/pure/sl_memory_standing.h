/*
 * Where a client stands, read from what a MemoryTable counts for it. Nothing is
 * changed by it.
 */

#pragma once

#include <cstdint>

#include "store/pure/sl_limit_query.h"
#include "store/pure/sl_memory_cells.h"
#include "store/pure/sl_standing.h"

namespace sl {

/* What is counted stands in `key`; nullptr: nothing is. What has expired must
 * have been dropped. */
void read_standing(Cells cells, const LimitQuery &client, const KeyCell *key,
                   const Ruling &ruling, int64_t now_us,
                   Standing *standing) noexcept;

}  // namespace sl
