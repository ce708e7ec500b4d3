/*
 * A small table of the embedded store, so that it is always short of cells,
 * between addresses that nobody may touch: all that a cell's number can lead
 * to.
 */

#pragma once

#include <sys/mman.h>

#include "fuzz.h"
#include "store/pure/sl_memory_table.h"

class GuardedTable {
  public:
    static constexpr size_t kSize = sl::MemoryTable::kSmallestMemory;

    /* There is one, which every input gets as if it was new. */
    static GuardedTable &fresh()
    {
        static GuardedTable table;
        const uint8_t secret[sl::MemoryTable::kSecretSize] = {1, 2, 3};

        sl::MemoryTable::format(table.memory_, kSize, secret);

        return table;
    }

    uint8_t *bytes() { return memory_; }

    sl::MemoryTable get() { return {memory_, kSize}; }
    sl::Cells cells() { return {memory_, kSize}; }

  private:
    static constexpr size_t kBefore = 1 << 20;
    static constexpr size_t kBehind = sl::kCellSize << 32;

    GuardedTable()
    {
        void *all = mmap(nullptr, kBefore + kSize + kBehind, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        check(all != MAP_FAILED);
        memory_ = static_cast<uint8_t *>(all) + kBefore;
        check(mprotect(memory_, kSize, PROT_READ | PROT_WRITE) == 0);
    }

    uint8_t *memory_;
};
