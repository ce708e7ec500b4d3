#include "store/pure/sl_memory_recovery.h"

#include <algorithm>
#include <cstring>

#include "store/pure/sl_memory_keys.h"
#include "store/pure/sl_memory_lists.h"
#include "store/pure/sl_memory_rulings.h"

namespace sl {

namespace {

constexpr int64_t kHour = int64_t{60} * 60 * 1000000;

/* No clock is later than this, and nobody has used more: sums of them do not
 * overflow. */
constexpr int64_t kLargest = int64_t{1} << 60;

/* Each request has a time of its own, so more than a million in a second run
 * ahead of the clock; but not by more than this. */
constexpr int64_t kMostAhead = kHour;

/* A bucket ends in the future, but not later than this: windows are shorter. */
constexpr int64_t kLongestBucket = 366 * 24 * kHour;

/* There is a slot for every two keys or less, and who comes into which is a
 * matter of chance: no slot ever has so many. */
constexpr unsigned kMostInSlot = 64;

bool is_reached(const BlockCell &block)
{
    return block.tag == CellTag::kReachedOnes
           || block.tag == CellTag::kReachedWeighted;
}

template <typename Function>
void for_each_cell(Cells cells, Function function)
{
    for (CellNumber n = cells.header().first_cell; cells.has(n); n++) {
        function(n);
    }
}

void unmark_reached(Cells cells)
{
    for_each_cell(cells, [cells](CellNumber n) {
        BlockCell &block = cells.block(n);

        if (block.tag == CellTag::kReachedOnes) {
            block.tag = CellTag::kOnes;
        } else if (block.tag == CellTag::kReachedWeighted) {
            block.tag = CellTag::kWeighted;
        }
    });
}

bool is_between(int64_t least, int64_t number, int64_t most)
{
    return least <= number && number <= most;
}

bool can_be_time(const TableHeader &h)
{
    return is_between(0, h.clock.now_us, kLargest)
           && is_between(0, h.clock.ahead_us, h.clock.now_us)
           && is_between(0, h.last_stamp_us, h.clock.now_us + kMostAhead);
}

/* What has been read of a chain so far. */
struct Sum {
    int64_t used;
    int64_t last_stamp;
    uint8_t end; /* the position after the last entry of the last block */
};

/*
 * Adds up a block's entries from the `first` one on, and clears what stands
 * behind the last one. False if one of them cannot be what a process of ours
 * has written.
 */
bool read_entries(BlockCell *block, uint8_t first, int64_t now_us, Sum *sum)
{
    bool is_ones = block->tag == CellTag::kOnes;
    int64_t latest = is_ones ? now_us : now_us + kLongestBucket;
    uint8_t end = 0;

    for (; end < block->size(); end++) {
        /* it has no opposite */
        if (is_ones && block->ones[end] == INT64_MIN) {
            return false;
        }

        int64_t stamp = block->stamp(end);

        if (stamp == 0) {
            break;
        }

        int64_t cost = block->cost(end);

        if (!is_between(sum->last_stamp + 1, stamp, latest)
            || !is_between(0, cost, kLargest - sum->used))
        {
            return false;
        }

        sum->last_stamp = stamp;
        sum->used += end >= first ? cost : 0;
    }

    for (uint8_t i = end; i < block->size(); i++) {
        if (is_ones) {
            block->ones[i] = 0;
        } else {
            block->weighted[i] = {};
        }
    }

    sum->end = end;

    return true;
}

/*
 * Finds the blocks of a key again, and marks them as reached. What is in the
 * last one shows in the stamps. False if they are not what can be there.
 */
bool recover_chain(Cells cells, KeyCell *key)
{
    int64_t now_us = cells.header().last_stamp_us;
    CellNumber next = key->first_block;
    Sum sum{};

    key->last_block = kNoCell;
    key->last_position = 0;
    key->block_count = 0;
    key->used = 0;

    while (next != kNoCell) {
        bool is_first = key->last_block == kNoCell;

        if (!cells.has(next)) {
            return false;
        }

        BlockCell &block = cells.block(next);

        if (is_first && block.tag == CellTag::kRefusal) {
            break;
        }

        if (!block.has_entries()) {
            return false;
        }

        /* whatever it was: to count what has expired does no harm */
        if (is_first && key->first_position >= block.size()) {
            key->first_position = 0;
        }

        uint8_t first = is_first ? key->first_position : 0;

        if (!read_entries(&block, first, now_us, &sum)) {
            return false;
        }

        /* it was being added */
        if (sum.end == 0) {
            break;
        }

        /* all of it was taken back: it was being removed */
        if (!is_first && block.counts_nothing()) {
            next = block.next;
            cells.block(key->last_block).next = next;
            in_this_order();
            block.tag = CellTag::kFree;
            continue;
        }

        block.tag = block.tag == CellTag::kOnes ? CellTag::kReachedOnes
                                                : CellTag::kReachedWeighted;
        block.earlier = key->last_block;
        key->last_block = next;
        key->last_position = sum.end;
        key->block_count++;
        next = block.next;
    }

    key->used = sum.used;

    if (key->last_block != kNoCell) {
        cells.block(key->last_block).next = kNoCell;
    }

    return true;
}

void free_with_chain(Cells cells, KeyCell *key)
{
    CellNumber number = key->first_block;

    /* from now on nobody looks for them there */
    key->tag = CellTag::kFree;
    in_this_order();

    for (; key->block_count > 0; key->block_count--) {
        BlockCell &block = cells.block(number);

        block.tag = CellTag::kFree;
        number = block.next;
    }
}

/* Whether there is room in its slot, and no other key of its name. */
bool can_be_linked(Cells cells, const KeyCell &key)
{
    CellNumber number = cells.slot_of(key.name);
    unsigned others = 0;

    while (number != kNoCell && others < kMostInSlot) {
        const KeyCell &other = cells.key(number);

        if (memcmp(other.name.hash, key.name.hash, sizeof(key.name.hash)) == 0)
        {
            return false;
        }

        number = other.hash_next;
        others++;
    }

    return others < kMostInSlot;
}

bool recover_key(Cells cells, CellNumber number)
{
    const TableHeader &h = cells.header();
    KeyCell &key = cells.key(number);

    if (key.list >= IdleLists::kLists || !recover_chain(cells, &key)) {
        return false;
    }

    /* a key without counts has nothing to remember; it may be half made */
    if (key.used == 0) {
        free_with_chain(cells, &key);
        return true;
    }

    if (!can_be_linked(cells, key)) {
        return false;
    }

    uint32_t touched_s = key.touched_s;

    Keys(cells).link(number);
    key.touched_s = std::min(key.touched_s, touched_s);
    key.expires_us =
        std::min(key.expires_us, h.last_stamp_us + 2 * kLongestBucket);

    return true;
}

bool recover_keys(Cells cells)
{
    bool are_ours = true;

    for_each_cell(cells, [cells, &are_ours](CellNumber n) {
        are_ours =
            are_ours
            && (cells.key(n).tag != CellTag::kKey || recover_key(cells, n));
    });

    return are_ours;
}

/* Makes a table without keys and free cells. */
void clear_lists(Cells cells)
{
    TableHeader &h = cells.header();

    h.keys = 0;
    h.regulars = 0;
    h.free_head = kNoCell;
    h.free_count = 0;
    memset(h.newest, 0, sizeof(h.newest));
    memset(h.oldest, 0, sizeof(h.oldest));
    cells.clear_slots();
}

void forget_all(Cells cells)
{
    clear_lists(cells);

    for_each_cell(cells,
                  [cells](CellNumber n) { cells.key(n).tag = CellTag::kFree; });
}

}  // namespace

void rebuild(Cells cells) noexcept
{
    TableHeader &h = cells.header();

    h.recoveries++;
    cells.lay_out();
    clear_lists(cells);

    if (!can_be_time(h)) {
        h.clock = TableClock{};
        h.last_stamp_us = 0;
    }

    Rulings(cells).recover();

    /* somebody may have been killed while rebuilding */
    unmark_reached(cells);

    if (!recover_keys(cells)) {
        forget_all(cells);
    }

    in_this_order();

    for_each_cell(cells, [cells](CellNumber n) {
        if (cells.key(n).tag != CellTag::kKey && !is_reached(cells.block(n))) {
            cells.give(n);
        }
    });

    unmark_reached(cells);
}

}  // namespace sl
