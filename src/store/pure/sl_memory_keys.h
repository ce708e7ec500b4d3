/*
 * The keys of a MemoryTable: found by name in a hash table, added, and removed
 * when they do not matter any more or when there is no room.
 *
 * Invariant: every key is in the slot of its name and in one list of idleness,
 * and no two have the same name; `keys` of the header is their number.
 */

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "store/pure/sl_limit_query.h"
#include "store/pure/sl_memory_cells.h"

namespace sl {

/* What a key remembers of a client in a zone. */
enum class KeyOf : uint8_t {
    kCounted, /* its requests: refused ones, too, where those count */
    kRefusal, /* what another store said */
};

class Keys {
  public:
    explicit Keys(Cells cells) noexcept : cells_(cells) {}

    KeyName name_of(const LimitQuery &limit, KeyOf what) const noexcept;

    /* kNoCell if there is no such key. */
    CellNumber find(const KeyName &name) const noexcept
    {
        CellNumber number = cells_.slot_of(name);

        while (number != kNoCell
               && memcmp(cells_.key(number).name.hash, name.hash,
                         sizeof(name.hash))
                      != 0)
        {
            number = cells_.key(number).hash_next;
        }

        return number;
    }

    /* A new key without blocks, which will matter for so long; there must be a
     * free cell. */
    CellNumber add(const KeyName &name, int64_t lasts_us) const noexcept;

    /* Puts a key whose name and list are known into the hash table and the
     * list. */
    void link(CellNumber number) const noexcept;

    /* Gives back the key and its blocks. */
    void remove(CellNumber number) const noexcept;

    /* Removes a key or two that matter for about so long and do not matter any
     * more. */
    void expire_idle(int64_t lasts_us) const noexcept;

    /*
     * Sees to it that so many cells are free, at the expense of keys that are
     * least wanted. False if only those are left that are to be spared.
     */
    bool make_room(uint32_t cells, const CellNumber *spared,
                   size_t count) const noexcept;

  private:
    Cells cells_;
};

}  // namespace sl
