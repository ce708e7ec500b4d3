/*
 * What operators have ruled about clients that a MemoryTable counts: an area of
 * fixed size in its memory, from which nothing is ever driven out.
 *
 * A ruling is named as the client's log in the zone is, whether or not the zone
 * counts in buckets: so it outlives a change of the window.
 *
 * Invariant: entries in use stand at the beginning of the area, and those with
 * a name are in the slot of the index for it, no two with the same. An entry
 * whose ruling has ended, or was lifted, stays there until its client is ruled
 * about again, or until another one needs its place. `until_us` of the header
 * is when the last of all rulings ends. Where that is past there is nothing to
 * look for, and an ordinary question ends there.
 *
 * Invariant between any two writes, should a process be killed: the name and
 * the texts of an entry whose ruling is in force are whole; and what a ruling
 * is changed to is known before the change begins (`changing`). The index,
 * `last` and `until_us` may be wrong: they are made anew (see
 * sl_memory_recovery.h).
 */

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "store/pure/sl_limit_query.h"
#include "store/pure/sl_memory_cells.h"
#include "store/pure/sl_standing.h"

namespace sl {

/* Some of a zone's clients about whom something was ruled, copied out of the
 * memory. */
struct RulingsPage {
    static constexpr size_t kMost = 100;

    RuledClient clients[kMost];
    char keys[kMost][kMaxReadableKey];
    size_t count;

    /* Where to go on; 0: these are all. */
    uint32_t next;
};

class Rulings {
  public:
    explicit Rulings(Cells cells) noexcept : cells_(cells) {}

    /* What the ruling about the client of this limit is called. */
    KeyName name_of(const LimitQuery &client) const noexcept;

    /* Whether anything is ruled about anybody. */
    bool are_any(int64_t now_us) const noexcept
    {
        return cells_.header().rulings.until_us > now_us;
    }

    /* nullptr if nothing is ruled; otherwise it may have ended. */
    const Ruling *find(const KeyName &name) const noexcept
    {
        uint32_t number = number_of(name);

        return number != kNone ? &cells_.ruling(number).ruling : nullptr;
    }

    /* Rules so about a client. False if there is no room for another. */
    bool set(const LimitQuery &client, const Ruling &ruling,
             int64_t now_us) const noexcept;

    /* For so many clients there is room. */
    uint32_t capacity() const noexcept
    {
        return cells_.header().rulings.capacity;
    }

    /* Those of a zone from the entry `from` on, which is 0 to begin with. */
    void list(std::string_view zone, uint32_t from, int64_t now_us,
              RulingsPage *page) const noexcept;

    /* Makes the area whole again, whatever bytes are in it. Of entries that
     * nobody can have written none stays. */
    void recover() const noexcept;

  private:
    static constexpr uint32_t kNone = 0;

    uint32_t number_of(const KeyName &name) const noexcept
    {
        uint32_t number = cells_.ruling_slot_of(name);

        while (number != kNone
               && memcmp(cells_.ruling(number).name.hash, name.hash,
                         sizeof(name.hash))
                      != 0)
        {
            number = cells_.ruling(number).next;
        }

        return number;
    }

    uint32_t add(const LimitQuery &client, const KeyName &name,
                 int64_t now_us) const noexcept;
    uint32_t take_place(int64_t now_us) const noexcept;
    void change(uint32_t number, const Ruling &ruling) const noexcept;
    void clear() const noexcept;
    void link(uint32_t number) const noexcept;
    void unlink(uint32_t number) const noexcept;
    int64_t last_end() const noexcept;

    void finish_change() const noexcept;
    bool can_be_linked(const KeyName &name) const noexcept;

    Cells cells_;
};

}  // namespace sl
