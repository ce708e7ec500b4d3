/*
 * A process may be killed in the middle of a change of a MemoryTable. Whoever
 * comes next is told so by the mark that was left, and rebuilds the table: what
 * was being counted is counted or not, all other counts stay. Refusals by other
 * stores are forgotten. What operators have ruled stays; see Rulings for what
 * holds there.
 *
 * Invariant that every change keeps between any two of its writes: what can be
 * reached from a cell with the tag of a key, through its first block and from
 * there through `next`, is what the key counts; each such block is whole but
 * for entries that are not written yet, which have the stamp 0. The free list,
 * the hash table, lists of idleness, `earlier`, sums and numbers may be wrong:
 * they are made anew.
 *
 * Nothing is followed before it has been checked, and where what is ends is
 * told by the size of the memory, not by what is in it. So whatever bytes stand
 * behind a mark, nobody leaves the memory, and the work is bounded: a walk over
 * the cells and the rulings. If they are none that one of these processes can
 * have written, no count is worth being believed: then all are forgotten.
 *
 * Without the mark nothing is checked, for the sake of speed. That somebody
 * else writes to this memory, who leaves no mark, is not provided for.
 */

#pragma once

#include <atomic>

#include "store/pure/sl_memory_cells.h"

namespace sl {

/* Makes the table whole again; if this process is killed, too, the next one
 * does. */
void rebuild(Cells cells) noexcept;

/* Leaves a mark in the table while something is being changed. */
class Change {
  public:
    explicit Change(Cells cells) noexcept : header_(cells.header())
    {
        if (header_.in_change.load(std::memory_order_acquire)) {
            rebuild(cells);
        }

        header_.in_change.store(1, std::memory_order_relaxed);
        in_this_order();
    }

    ~Change()
    {
        in_this_order();
        header_.in_change.store(0, std::memory_order_release);
    }

    Change(const Change &) = delete;
    Change &operator=(const Change &) = delete;

  private:
    TableHeader &header_;
};

}  // namespace sl
