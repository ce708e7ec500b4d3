/*
 * The memory of a MemoryTable: a header, the slots of a hash table, an area for
 * what operators have ruled (see Rulings), and cells of 64 bytes. A cell is a
 * key (a client in a zone, or a refusal of one), or a block of what a key has
 * to remember, or free.
 *
 * Invariant, whenever no change is under way (see Change): every cell is in
 * exactly one place. A free cell is in the free list; a key is in the hash
 * table and in one of the lists of idleness; a block is in the chain of one
 * key. Free cells may still show what they were used for last.
 *
 * Positions are cell numbers, so the memory may lie elsewhere in every process.
 * The header takes the first cells, so no cell that can be taken has number 0.
 */

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/pure/sl_readable_key.h"
#include "base/pure/sl_siphash.h"
#include "store/pure/sl_ruling.h"
#include "store/pure/sl_zone_name.h"

namespace sl {

constexpr size_t kCellSize = 64;

using CellNumber = uint32_t;

constexpr CellNumber kNoCell = 0;

/* What stands before a call is in memory before what stands behind it, should
 * this process be killed. */
inline void in_this_order() noexcept
{
    std::atomic_signal_fence(std::memory_order_seq_cst);
}

/* What a cell is; in the same bits of every cell. */
enum class CellTag : uint8_t {
    kFree,
    kKey,
    kOnes,
    kWeighted,
    kRefusal,

    /* While the table is rebuilt: a block that belongs to a key. */
    kReachedOnes,
    kReachedWeighted,
};

constexpr unsigned kCellTagBits = 3;
constexpr unsigned kCellNumberBits = 32 - kCellTagBits;

struct KeyName {
    uint8_t hash[kSipHashSize];
};

/*
 * A client in a zone, with the chain of blocks that hold its requests, oldest
 * first; or a refusal, which takes one block.
 *
 * The compiler must know that cells of one type become cells of another one.
 */
struct [[gnu::may_alias]] KeyCell {
    CellTag tag;
    uint8_t list;           /* of idleness; see IdleLists */
    uint8_t first_position; /* of the first entry, in the first block */
    uint8_t last_position;  /* after the last entry, in the last block */
    CellNumber hash_next;
    CellNumber older; /* neighbours in its list */
    CellNumber newer;
    KeyName name;
    CellNumber first_block;
    CellNumber last_block;
    uint32_t block_count;
    uint32_t touched_s;
    int64_t used; /* the sum of what its entries cost */
    int64_t expires_us;
};

/* That another store, asked at `since_us`, refused; see Refusals. */
struct RefusalNote {
    int64_t used;
    int64_t since_us;
    int64_t until_us;

    /* When somebody was last told to ask again. */
    int64_t checked_us;

    /* When it was asked by the clock that callers bring. */
    int64_t asked_us;

    /* As in LimitState. */
    int64_t ruled_max;
    bool is_banned;
};

/* A block of a chain: entries with their stamps, oldest first; or a refusal. */
struct [[gnu::may_alias]] BlockCell {
    struct Weighted {
        int64_t stamp;
        int64_t cost;
    };

    static constexpr uint8_t kOnesSize = 7;
    static constexpr uint8_t kWeightedSize = 3;

    CellTag tag : kCellTagBits;

    /* The block before this one, unless this is the first of its key. */
    CellNumber earlier : kCellNumberBits;

    /* The next block of the chain, or the next free cell. */
    CellNumber next;

    union {
        /* Stamps of requests that cost 1; negative ones were taken back. */
        int64_t ones[kOnesSize];

        Weighted weighted[kWeightedSize];

        RefusalNote refusal;
    };

    uint8_t size() const noexcept
    {
        return tag == CellTag::kOnes ? kOnesSize : kWeightedSize;
    }

    int64_t stamp(uint8_t i) const noexcept
    {
        if (tag != CellTag::kOnes) {
            return weighted[i].stamp;
        }

        return ones[i] < 0 ? -ones[i] : ones[i];
    }

    int64_t cost(uint8_t i) const noexcept
    {
        return tag == CellTag::kOnes ? ones[i] > 0 : weighted[i].cost;
    }

    bool has_entries() const noexcept
    {
        return tag == CellTag::kOnes || tag == CellTag::kWeighted;
    }

    /* The position after the last entry that has been written. */
    uint8_t end() const noexcept
    {
        uint8_t i = 0;

        while (i < size() && stamp(i) != 0) {
            i++;
        }

        return i;
    }

    bool counts_nothing() const noexcept
    {
        for (uint8_t i = 0; i < size(); i++) {
            if (cost(i) != 0) {
                return false;
            }
        }

        return true;
    }
};

static_assert(sizeof(KeyCell) == kCellSize, "a key is a cell");
static_assert(sizeof(BlockCell) == kCellSize, "a block is a cell");

/* What was ruled about one client, with its zone and key for people to read. */
struct RulingEntry {
    KeyName name;
    Ruling ruling;

    /* The next one in its slot of the index, as there. */
    uint32_t next;

    uint8_t zone_size;
    uint8_t key_size;
    char zone[kMaxZoneName];
    char key[kMaxReadableKey];
    char reserved[18];
};

static_assert(sizeof(RulingEntry) == 256, "so many of them fit");

/* What is known of all rulings; see Rulings. Their numbers begin with 1, so
 * that 0 is none of them. */
struct RulingsHeader {
    uint32_t first_cell; /* of the index, which entries follow */
    uint32_t index_mask;
    uint32_t capacity;

    /* The largest number that is in use. */
    uint32_t last;

    /* When the last of them ends; 0: there is none. */
    int64_t until_us;

    /* One that is being changed, and what it will be. */
    uint32_t changing;
    Ruling change_to;
};

/*
 * The table's time, which goes with the clock that callers bring, but not back
 * with it: if the clock steps back, time goes on from where it was. So nothing
 * leaves a window early, and nobody waits until the clock is where it has been.
 */
struct TableClock {
    /* The table's time when somebody last told it the clock's. */
    int64_t now_us;

    /* By how much it is ahead of the clock, for all that this stepped back. */
    int64_t ahead_us;

    int64_t set(int64_t clock_us) noexcept
    {
        if (clock_us + ahead_us < now_us) {
            ahead_us = now_us - clock_us;
        }

        now_us = clock_us + ahead_us;

        return now_us;
    }
};

struct TableHeader {
    static constexpr unsigned kIdleLists = 64;

    CellNumber first_cell;
    CellNumber end_cell; /* the number after the last cell */
    uint32_t hash_mask;
    CellNumber free_head;
    uint32_t free_count;

    /* Of each list of idleness: the key that was touched last, and the one
     * that has waited longest. */
    CellNumber newest[kIdleLists];
    CellNumber oldest[kIdleLists];

    /* 1 while somebody changes something; see Change. */
    std::atomic<uint32_t> in_change;

    TableClock clock;

    /* The time of the last request: no two have the same. */
    int64_t last_stamp_us;

    uint64_t keys;
    uint64_t regulars; /* keys in lists of those who keep coming */
    uint64_t evictions;
    uint64_t recoveries;
    RulingsHeader rulings;
    uint8_t secret[kSipHashKeySize];
};

/* Finds its way in the memory, and hands out cells. */
class Cells {
  public:
    /* Makes all cells of `memory` free; see MemoryTable::format(). */
    static void format(void *memory, size_t size,
                       const uint8_t (&secret)[kSipHashKeySize]) noexcept;

    /* Memory of this size that has been formatted, perhaps by another process.
     */
    Cells(void *memory, size_t size) noexcept
        : memory_(static_cast<uint8_t *>(memory)), size_(size)
    {}

    /* Writes to the header where what is, which follows from the size. */
    void lay_out() const noexcept;

    TableHeader &header() const noexcept
    {
        return *reinterpret_cast<TableHeader *>(memory_);
    }

    KeyCell &key(CellNumber number) const noexcept
    {
        return *reinterpret_cast<KeyCell *>(at(number));
    }

    BlockCell &block(CellNumber number) const noexcept
    {
        return *reinterpret_cast<BlockCell *>(at(number));
    }

    /* Whether it is the number of a cell that can be taken. */
    bool has(CellNumber number) const noexcept
    {
        return number >= header().first_cell && number < header().end_cell;
    }

    /* Where the hash table's chain of keys with such names begins. */
    CellNumber &slot_of(const KeyName &name) const noexcept
    {
        uint32_t number;
        memcpy(&number, name.hash, sizeof(number));

        return slots()[number & header().hash_mask];
    }

    void clear_slots() const noexcept;

    /* Entries of rulings from 1 to their capacity, and where their index has
     * those with such names. */
    RulingEntry &ruling(uint32_t number) const noexcept
    {
        uint8_t *entries = at(header().rulings.first_cell) + index_size();

        return reinterpret_cast<RulingEntry *>(entries)[number - 1];
    }

    uint32_t &ruling_slot_of(const KeyName &name) const noexcept
    {
        const RulingsHeader &rulings = header().rulings;
        uint32_t number;
        memcpy(&number, name.hash, sizeof(number));

        return reinterpret_cast<uint32_t *>(
            at(rulings.first_cell))[number & rulings.index_mask];
    }

    void clear_ruling_slots() const noexcept;

    /* A free cell; there must be one. Its contents are as they were left. */
    CellNumber take() const noexcept
    {
        CellNumber number = header().free_head;

        header().free_head = block(number).next;
        header().free_count--;

        return number;
    }

    void give(CellNumber number) const noexcept
    {
        block(number).tag = CellTag::kFree;
        give(number, number, 1);
    }

    /* Gives back `count` cells at once that are linked through `next`. */
    void give(CellNumber first, CellNumber last, uint32_t count) const noexcept
    {
        block(last).next = header().free_head;
        header().free_head = first;
        header().free_count += count;
    }

  private:
    static constexpr size_t kHeaderCells =
        (sizeof(TableHeader) + kCellSize - 1) / kCellSize;

    void lay_out_rulings(CellNumber first) const noexcept;

    /* In bytes, whole cells. */
    size_t index_size() const noexcept
    {
        return (size_t{header().rulings.index_mask} + 1) * sizeof(uint32_t);
    }

    uint8_t *at(CellNumber number) const noexcept
    {
        return &memory_[size_t{number} * kCellSize];
    }

    CellNumber *slots() const noexcept
    {
        return reinterpret_cast<CellNumber *>(at(kHeaderCells));
    }

    uint8_t *memory_;
    size_t size_;
};

}  // namespace sl
