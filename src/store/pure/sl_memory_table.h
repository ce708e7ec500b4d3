/*
 * Counts in a piece of memory that several processes share: the embedded
 * store without locks, clocks or nginx. Whoever calls holds a lock and brings
 * the time: SharedMemory owns that memory and the lock, and MemoryStore is the
 * store that asks the table. Besides, the table keeps other stores' refusals in
 * mind.
 *
 * Decisions are those of the script in lua/: the same limits, asked in the
 * same order at the same times, are answered alike.
 *
 * The table is made of these parts:
 *
 *   sl_memory_cells     the memory: 64 bytes for a key or a block, and the time
 *   sl_memory_chain     the blocks of a key: what is counted, oldest first
 *   sl_memory_lists     which keys nobody has asked about for longest
 *   sl_memory_keys      finds keys, adds them, and removes them to make room
 *   sl_memory_refusals  what other stores have said
 *   sl_memory_rulings   what operators have ruled about clients
 *   sl_memory_deed      what operators do about one client
 *   sl_memory_standing  where a client stands, for them to see
 *   sl_memory_recovery  makes the table whole after a process was killed
 *   sl_stamp.h          when requests and buckets leave a window
 *
 * A key takes a cell, and its counted requests take blocks of one cell each:
 * seven requests, or three where they cost something else than 1. A refusal to
 * remember takes a key and a block, too.
 *
 * While somebody holds the lock everybody else waits. So no call does more than
 * this, whatever a client has done before:
 *
 *   find a key         its name's length, and those few of the same hash
 *   drop what expired  512 blocks of a key; all of them at once are one step
 *   count a request    a block; where refused ones count, those of the oldest
 *                      1,000 units
 *   name a wait        512 blocks are read; after that it is named too short;
 *                      twice where a client has another max for a while
 *   settle             a block, or with buckets all (100, three in a block);
 *                      a block for what has cost more
 *   make room          two keys for each limit, each of the oldest ones of 64
 *                      lists, besides those that are being asked about
 *   idle keys          two for each limit
 *   remember, recall   a block, and room for it
 *   a ruling           an entry; if it was the last to end, or there is no room
 *                      for another, all of them are looked at
 *   a client's place   a block for each of 100 requests, or all buckets
 *   list rulings       4096 entries
 *   rebuild            all of the memory, once after a process was killed
 *
 * for each limit of a request, of which there are kMaxLimits at most.
 */

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "store/pure/sl_limit_query.h"
#include "store/pure/sl_limit_state.h"
#include "store/pure/sl_memory_cells.h"
#include "store/pure/sl_memory_refusals.h"
#include "store/pure/sl_memory_rulings.h"
#include "store/pure/sl_standing.h"

namespace sl {

enum class Decided {
    kYes,

    /* There is no memory left to count the request in, or to rule about another
     * client. */
    kNoMemory,

    /*
     * So much of a client's past has to be dropped first that this is done in
     * several calls, between which others have their turn. Nothing has been
     * counted: ask once more.
     */
    kNotYet,
};

struct TableStats {
    uint64_t cells; /* in all */
    uint64_t free_cells;
    uint64_t keys;

    /* Keys that had to leave before their time, for want of memory. */
    uint64_t evictions;

    /* Times that a killed process left a change half done. */
    uint64_t recoveries;
};

class MemoryTable {
  public:
    static constexpr size_t kSmallestMemory = 32 * 1024;
    static constexpr size_t kCellSize = sl::kCellSize;
    static constexpr size_t kSecretSize = kSipHashKeySize;

    /*
     * Makes a table of `size` bytes, at least kSmallestMemory, aligned to 64.
     * The secret keeps clients from choosing keys that collide.
     */
    static void format(void *memory, size_t size,
                       const uint8_t (&secret)[kSecretSize]) noexcept
    {
        Cells::format(memory, size, secret);
    }

    /* A table of this size that has been formatted, perhaps by another process.
     */
    MemoryTable(void *memory, size_t size) noexcept : cells_(memory, size) {}

    /*
     * Decides about a request, and counts it. `*time_us` and the places in
     * `states` identify what was counted.
     */
    Decided ask(const LimitQuery *limits, size_t count, int64_t clock_us,
                LimitState *states, int64_t *time_us) noexcept;

    /*
     * What was counted at that time, each at its `place`, has cost what the
     * limits say instead: less is given back, and if it is nothing all that is
     * left; more is counted as of now. If there is no memory for that,
     * kNoMemory; what is less is given back all the same.
     */
    Decided settle(const LimitQuery *limits, size_t count, int64_t time_us,
                   int64_t clock_us) noexcept;

    /*
     * Does something about the client of this limit, and tells where it stands
     * then. If there is no room for a ruling nothing has changed.
     */
    Decided intervene(const LimitQuery &client,
                      const Intervention &intervention, int64_t clock_us,
                      Standing *standing) noexcept;

    /* See Rulings. */
    void list_rulings(std::string_view zone, uint32_t from, int64_t clock_us,
                      RulingsPage *page) noexcept;
    uint32_t most_rulings() const noexcept
    {
        return Rulings(cells_).capacity();
    }

    /* See Refusals. */
    void remember(const LimitQuery &limit, const LimitState &state,
                  int64_t asked_us, int64_t clock_us) noexcept
    {
        Refusals(cells_).remember(limit, state, asked_us, clock_us);
    }

    Recalled recall(const LimitQuery &limit, int64_t clock_us,
                    int64_t max_age_us, LimitState *state,
                    int64_t void_until_us = kNothingVoid) noexcept
    {
        return Refusals(cells_).recall(limit, clock_us, max_age_us, state,
                                       void_until_us);
    }

    void forget(const LimitQuery &limit) noexcept
    {
        Refusals(cells_).forget(limit);
    }

    TableStats stats() const noexcept;

    /* As if a process had been killed in the middle of a change. For tests. */
    void leave_half_done() noexcept;

  private:
    /* The time of what is counted, which nothing else has. */
    int64_t next_stamp(int64_t clock_us) noexcept;

    /* Of what happens without a stamp of its own. */
    int64_t set_clock(int64_t clock_us) noexcept;

    Cells cells_;
};

}  // namespace sl
