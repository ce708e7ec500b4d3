/*
 * Which keys of a MemoryTable nobody has asked about for longest.
 *
 * Keys are listed by how long they matter, 100 ms to 31 days by powers of two,
 * and by whether they have been asked about more than once: a flood of clients
 * that come only once must not drive out the regulars, who keep coming.
 *
 * Invariant: every key is in the list that its cell names, between the keys
 * that were touched before it and those touched after it; `regulars` of the
 * header is the number of keys in lists of regulars.
 */

#pragma once

#include <cstddef>
#include <cstdint>

#include "store/pure/sl_memory_cells.h"

namespace sl {

class IdleLists {
  public:
    static constexpr unsigned kLists = TableHeader::kIdleLists;

    explicit IdleLists(Cells cells) noexcept : cells_(cells) {}

    /* The list of new keys that matter for so long; regulars of the same kind
     * are in the next list. */
    static uint8_t list_of(int64_t lasts_us) noexcept
    {
        uint8_t list = 0;

        for (uint64_t w = static_cast<uint64_t>(lasts_us) >> 16; w; w >>= 1) {
            list += 2;
        }

        return list;
    }

    static bool is_of_regulars(unsigned list) noexcept { return list % 2 == 1; }

    /* Puts a key into its list, and takes it out again. */
    void add(CellNumber number) const noexcept;
    void remove(CellNumber number) const noexcept;

    /* Somebody asks about a key that is there already: it is a regular. */
    void touch(CellNumber number) const noexcept;

    /* A key matters for longer now, or not for as long. */
    void move_to(CellNumber number, unsigned list) const noexcept;

    /* The key of this list that nobody has asked about for longest, if it does
     * not matter any more; else kNoCell. */
    CellNumber expired(unsigned list) const noexcept
    {
        CellNumber number = cells_.header().oldest[list];

        return number != kNoCell && is_expired(number) ? number : kNoCell;
    }

    bool is_expired(CellNumber number) const noexcept
    {
        return cells_.key(number).expires_us <= cells_.header().clock.now_us;
    }

    /*
     * The key that can best be done without, but none of those to be spared:
     * first one that does not matter any more, then one that came only once,
     * then a regular; of each kind the one that nobody has asked about for
     * longest. kNoCell if there are no others.
     */
    CellNumber least_wanted(const CellNumber *spared,
                            size_t count) const noexcept;

  private:
    /* Of four keys so many may be kept as regulars. */
    static constexpr uint64_t kRegularsOfFour = 3;

    bool goes_before(CellNumber a, CellNumber b) const noexcept;

    Cells cells_;
};

/* Every question touches its keys: these are worth being compiled in place. */

inline void IdleLists::add(CellNumber number) const noexcept
{
    TableHeader &header = cells_.header();
    KeyCell &key = cells_.key(number);
    CellNumber &newest = header.newest[key.list];

    key.touched_s = static_cast<uint32_t>(header.clock.now_us / 1000000);
    key.newer = kNoCell;
    key.older = newest;

    if (newest != kNoCell) {
        cells_.key(newest).newer = number;
    } else {
        header.oldest[key.list] = number;
    }

    newest = number;
    header.regulars += is_of_regulars(key.list);
}

inline void IdleLists::remove(CellNumber number) const noexcept
{
    TableHeader &header = cells_.header();
    const KeyCell &key = cells_.key(number);

    header.regulars -= is_of_regulars(key.list);

    if (key.newer != kNoCell) {
        cells_.key(key.newer).older = key.older;
    } else {
        header.newest[key.list] = key.older;
    }

    if (key.older != kNoCell) {
        cells_.key(key.older).newer = key.newer;
    } else {
        header.oldest[key.list] = key.newer;
    }
}

inline void IdleLists::move_to(CellNumber number, unsigned list) const noexcept
{
    remove(number);
    cells_.key(number).list = static_cast<uint8_t>(list);
    add(number);
}

inline void IdleLists::touch(CellNumber number) const noexcept
{
    const TableHeader &header = cells_.header();
    const KeyCell &key = cells_.key(number);

    if (is_of_regulars(key.list)) {
        remove(number);
        add(number);
        return;
    }

    move_to(number, key.list + 1);

    /* there must be room for new ones, too */
    if (header.regulars * 4 > header.keys * kRegularsOfFour) {
        CellNumber oldest = header.oldest[key.list];

        if (oldest != number) {
            move_to(oldest, key.list - 1);
        }
    }
}

}  // namespace sl
