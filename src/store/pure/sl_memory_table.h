/*
 * Counts in a piece of memory that several processes share: the embedded
 * store without locks, clocks or nginx. Whoever calls holds a lock and brings
 * the time. SharedMemory owns that memory and the lock, and MemoryStore is the
 * store that asks the table.
 *
 * Decisions are those of lua/sliding_window.lua: the same limits, asked in the
 * same order at the same times, are answered alike.
 *
 * Besides it keeps refusals by other stores in mind.
 *
 * The memory is cells of 64 bytes. A key takes one, and its counted requests
 * blocks of one cell each: seven requests, or three where they cost something
 * else than 1. A refusal to remember takes a key and a block, too. Positions
 * are cell numbers, so the memory may lie elsewhere in every process.
 *
 * Time is the table's own: it goes with the clock that callers bring, but not
 * back with it.
 *
 * While somebody holds the lock everybody else waits. So no call does more than
 * this, whatever a client has done before:
 *
 *   find a key         its name's length, and those few of the same hash
 *   drop what expired  512 blocks of a key; all of them at once are one step
 *   count a request    a block; 64 refused ones that make no difference go
 *   name a wait        512 blocks are read; after that it is named too short
 *   take back          a block, or with buckets all (100, three in a block)
 *   make room          two keys for each limit, each of the oldest ones of 64
 *                      lists, besides those that are being asked about
 *   idle keys          two for each limit
 *   remember, recall   a block, and room for it
 *   rebuild            all of the memory, once after a process was killed
 *
 * for each limit of a request, of which there are kMaxLimits at most.
 *
 * A process may be killed in the middle of a change. Whoever comes next is
 * told by the mark it left (see Change), and everything is rebuilt from the
 * keys and their blocks: what was being counted is counted or not, all else
 * stays.
 */

#pragma once

#include <cstddef>
#include <cstdint>

#include "store/pure/sl_limit_query.h"
#include "store/pure/sl_limit_state.h"

namespace sl {

/* For MemoryTable::recall(): as long as it lasts. */
constexpr int64_t kAnyAge = INT64_MAX;

enum class Decided {
    kYes,

    /* There is none left to count it in. */
    kNoMemory,

    /*
     * So much of a client's past has to be dropped first that this is done in
     * several calls, between which others have their turn. Nothing has been
     * counted: ask once more.
     */
    kNotYet,
};

enum class Recalled { kNothing, kRefusal, kAskAgain };

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
    static constexpr size_t kCellSize = 64;
    static constexpr size_t kSecretSize = 16;

    /*
     * Makes a table of `size` bytes, at least kSmallestMemory, aligned to 64.
     * The secret keeps clients from choosing keys that collide.
     */
    static void format(void *memory, size_t size,
                       const uint8_t (&secret)[kSecretSize]) noexcept;

    /* A table that has been formatted, perhaps by another process. */
    explicit MemoryTable(void *memory) noexcept;

    /*
     * Decides about a request, and counts it. `*time_us` and the places in
     * `states` identify what was counted.
     */
    Decided ask(const LimitQuery *limits, size_t count, int64_t clock_us,
                LimitState *states, int64_t *time_us) noexcept;

    /* Takes back what was counted at that time, each at its `place`. */
    void take_back(const LimitQuery *limits, size_t count,
                   int64_t time_us) noexcept;

    /*
     * Keeps in mind that another store, asked at `asked_us`, refused. It named
     * the moment before which it will not admit such a request, one of the
     * same key, cost and max; whatever it counts until then only moves that
     * moment further away. Where nothing is ever taken back, it need not be
     * asked again until then.
     */
    void remember(const LimitQuery &limit, const LimitState &state,
                  int64_t asked_us, int64_t clock_us) noexcept;

    /*
     * Whether such a refusal is known; if so, `state` is what the store would
     * say, used as of then. If nobody has asked the store for max_age_us, the
     * caller is told to, while for others it goes on being known.
     */
    Recalled recall(const LimitQuery &limit, int64_t clock_us,
                    int64_t max_age_us, LimitState *state) noexcept;

    /* The store has admitted such a request, against expectation. */
    void forget(const LimitQuery &limit) noexcept;

    TableStats stats() const noexcept;

    /* As if a process had been killed in the middle of a change. For tests. */
    void leave_half_done() noexcept;

  private:
    using CellNumber = uint32_t;

    struct Header;
    struct Key;
    struct Refusal;
    struct Block;
    struct Name;
    struct Entry;
    struct Asked;
    class Change;
    class Cursor;

    static size_t header_cells() noexcept;
    Header &header() const noexcept;
    CellNumber *slots() const noexcept;
    CellNumber &slot_of(const Name &name) const noexcept;
    Key &key_at(CellNumber number) const noexcept;
    Block &block_at(CellNumber number) const noexcept;

    bool read(const LimitQuery &limit, Asked *asked) noexcept;
    void count(const LimitQuery &limit, Asked *asked) noexcept;
    int64_t leaves(const LimitQuery &limit, const Asked &asked,
                   int64_t amount) const noexcept;

    int64_t time_at(int64_t clock_us) noexcept;
    void append(Key &key, int64_t stamp, int64_t cost, bool is_bucket) noexcept;
    static Entry last_entry(const Key &key) noexcept;
    int64_t stamp_at(Entry entry) const noexcept;
    bool drop_front(Key &key, int64_t last_expired) noexcept;
    int64_t drop_surplus(Key &key, int64_t max) noexcept;
    Entry find_entry(CellNumber number, uint64_t place,
                     int64_t stamp) const noexcept;
    Entry find_bucket(CellNumber number, int64_t stamp) const noexcept;
    void take_back(Key &key, Entry entry, int64_t cost) noexcept;
    void remove_block(Key &key, CellNumber number) noexcept;

    enum class NameOf : uint8_t { kCounted, kRefused, kRefusal };

    Name name_of(const LimitQuery &limit, NameOf what) const noexcept;
    CellNumber find(const Name &name) const noexcept;
    CellNumber add_refusal(const Name &name, int64_t lasts) noexcept;
    CellNumber add_key(const Name &name, int64_t window_us) noexcept;
    void remove_key(CellNumber number) noexcept;
    void touch(CellNumber number) noexcept;
    void move_to(CellNumber number, unsigned list) noexcept;
    void link_newest(CellNumber number) noexcept;
    void unlink(CellNumber number) noexcept;

    CellNumber take_cell() noexcept;
    void give_cell(CellNumber number) noexcept;
    void give_cells(CellNumber first, CellNumber last, uint32_t count) noexcept;
    void give_chain(Key &key) noexcept;
    static bool is_asked(CellNumber number, const Asked *asked,
                         size_t count) noexcept;
    bool make_room(uint32_t cells, const Asked *asked, size_t count) noexcept;
    void expire_idle(unsigned list) noexcept;
    bool is_expired(CellNumber number) const noexcept;
    bool goes_before(CellNumber a, CellNumber b) const noexcept;

    void recover() noexcept;
    void recover_key(CellNumber number) noexcept;
    void unmark_reached() noexcept;

    uint8_t *memory_;
};

}  // namespace sl
