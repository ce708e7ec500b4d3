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

/* What is counted for a client: its key, and that of its refused requests where
 * those count; nullptr: there is none. */
struct CountedKeys {
    const KeyCell *counted;
    const KeyCell *refused;
};

/*
 * What has expired must have been dropped. The newest ones are read, and some
 * more to know how many there are: after 512 blocks of a key the others are
 * taken to cost as much as those, which is exact where all cost the same.
 */
void read_standing(Cells cells, const LimitQuery &client, CountedKeys keys,
                   const Ruling &ruling, int64_t now_us,
                   Standing *standing) noexcept;

}  // namespace sl
