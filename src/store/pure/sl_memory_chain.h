/*
 * What is counted for a key of a MemoryTable: a chain of blocks with entries,
 * each of which has a stamp and a cost.
 *
 * Invariant: stamps grow from the first entry to the last one; the key's `used`
 * is the sum of all costs; a block has entries of one kind, and has at least
 * one that counts, unless it is the first one. An entry of which all was given
 * back stays in its place with no cost until its block goes, or until it
 * stands in front.
 */

#pragma once

#include <algorithm>
#include <cstdint>

#include "store/pure/sl_memory_cells.h"

namespace sl {

/* Where a request is counted; a block of kNoCell: nowhere. */
struct Entry {
    CellNumber block;
    uint8_t position;

    /* As one number, for LimitState; and that number's entry. */
    uint64_t place() const noexcept
    {
        return static_cast<uint64_t>(block) << 8 | position;
    }

    static Entry at(uint64_t place) noexcept
    {
        return Entry{static_cast<CellNumber>(place >> 8),
                     static_cast<uint8_t>(place)};
    }
};

class Chain {
  public:
    Chain(Cells cells, KeyCell &key) noexcept : cells_(cells), key_(key) {}

    /*
     * Adds an entry at the end; there must be a free cell for it. What is
     * counted in a bucket is added to the last entry if that is the bucket.
     */
    Entry append(int64_t stamp, int64_t cost, bool is_bucket) noexcept;

    /*
     * Drops what stands in front and has expired or was given back. False if
     * that is more than may be dropped at a time: then such entries may still
     * stand in front. All entries at once are one step.
     */
    bool drop_front(int64_t last_expired) noexcept
    {
        /* most often all of it has expired, or nothing */
        if (key_.used == 0
            || (key_.last_position > 0 && stamp_at(last()) <= last_expired))
        {
            clear();
            return true;
        }

        return stays({key_.first_block, key_.first_position}, last_expired)
               || drop_some(last_expired);
    }

    /* Drops so many of the oldest units; there must be as many. Of an entry a
     * part may stay. */
    void drop_oldest(int64_t units) noexcept;

    /* Drops all blocks, however many, in one step. */
    void clear() noexcept;

    /* The entry with this stamp, if it is still at its place. */
    Entry find(uint64_t place, int64_t stamp) const noexcept;

    /* The bucket with this stamp, wherever it is. */
    Entry find_bucket(int64_t stamp) const noexcept;

    /* What an entry costs. */
    int64_t cost_at(Entry entry) const noexcept
    {
        return cells_.block(entry.block).cost(entry.position);
    }

    /* Gives back so much of an entry, or what there is of it. */
    void give_back(Entry entry, int64_t amount) noexcept;

  private:
    Entry last() const noexcept
    {
        return Entry{key_.last_block,
                     static_cast<uint8_t>(key_.last_position - 1)};
    }

    int64_t stamp_at(Entry entry) const noexcept
    {
        return cells_.block(entry.block).stamp(entry.position);
    }

    bool stays(Entry entry, int64_t last_expired) const noexcept
    {
        const BlockCell &block = cells_.block(entry.block);

        return block.stamp(entry.position) > last_expired
               && block.cost(entry.position) != 0;
    }

    bool drop_some(int64_t last_expired) noexcept;
    BlockCell &add_block(CellTag tag) noexcept;
    void begin_at(Entry entry, CellNumber last_dropped,
                  uint32_t dropped) noexcept;
    void remove_block(CellNumber number) noexcept;

    Cells cells_;
    KeyCell &key_;
};

/* Every question counts, and many give something back: these are worth being
 * compiled in place. */

/* Buckets are always weighted, so that more can be added to the last one. */
inline Entry Chain::append(int64_t stamp, int64_t cost, bool is_bucket) noexcept
{
    CellTag tag = is_bucket || cost != 1 ? CellTag::kWeighted : CellTag::kOnes;
    BlockCell *block =
        key_.last_block != kNoCell ? &cells_.block(key_.last_block) : nullptr;
    uint8_t end = key_.last_position;

    key_.used += cost;

    if (is_bucket && block != nullptr && end > 0
        && block->weighted[end - 1].stamp == stamp)
    {
        block->weighted[end - 1].cost += cost;
        return last();
    }

    if (block == nullptr || block->tag != tag || end == block->size()) {
        block = &add_block(tag);
        end = 0;
    }

    if (tag == CellTag::kOnes) {
        block->ones[end] = stamp;
    } else {
        block->weighted[end] = {stamp, cost};
    }

    key_.last_position = end + 1;

    return last();
}

/*
 * A place is a hint: its cell may be free again by now, or be used for
 * something else, or for the same client. Nobody else has this stamp, so a cell
 * that shows it has not been used again; and a chain is in the order of its
 * stamps, so the cell is still in it unless the chain begins later.
 */
inline Entry Chain::find(uint64_t place, int64_t stamp) const noexcept
{
    constexpr Entry kNowhere{kNoCell, 0};
    Entry entry = Entry::at(place);

    if (key_.first_block == kNoCell || !cells_.has(entry.block)) {
        return kNowhere;
    }

    const BlockCell &block = cells_.block(entry.block);

    if (!block.has_entries() || entry.position >= block.size()
        || block.stamp(entry.position) != stamp
        || stamp_at({key_.first_block, key_.first_position}) > stamp)
    {
        return kNowhere;
    }

    return entry;
}

inline void Chain::give_back(Entry entry, int64_t amount) noexcept
{
    BlockCell &block = cells_.block(entry.block);

    amount = std::min(amount, block.cost(entry.position));
    key_.used -= amount;

    if (block.tag == CellTag::kWeighted) {
        block.weighted[entry.position].cost -= amount;
    } else if (amount > 0) {
        block.ones[entry.position] = -block.ones[entry.position];
    }

    if (entry.block == key_.first_block || key_.used == 0) {
        drop_front(0);
    } else if (block.counts_nothing()) {
        remove_block(entry.block);
    }
}

/* Goes through the entries of a key, oldest first; nullptr has none. */
class ChainReader {
  public:
    ChainReader(Cells cells, const KeyCell *key) noexcept
        : cells_(cells), key_(key), block_(key ? key->first_block : kNoCell),
          position_(key ? key->first_position : 0)
    {
        settle();
    }

    bool at_end() const noexcept { return block_ == kNoCell; }

    int64_t stamp() const noexcept
    {
        return cells_.block(block_).stamp(position_);
    }

    int64_t cost() const noexcept
    {
        return cells_.block(block_).cost(position_);
    }

    void next() noexcept
    {
        position_++;
        settle();
    }

    unsigned blocks_read() const noexcept { return blocks_read_; }

    Entry entry() const noexcept { return Entry{block_, position_}; }

  private:
    /* Goes on to the next block if this one is through. */
    void settle() noexcept
    {
        while (block_ != kNoCell) {
            const BlockCell &block = cells_.block(block_);
            bool is_last = block_ == key_->last_block;

            if (position_ < (is_last ? key_->last_position : block.size())) {
                return;
            }

            block_ = is_last ? kNoCell : block.next;
            position_ = 0;
            blocks_read_++;
        }
    }

    Cells cells_;
    const KeyCell *key_;
    CellNumber block_;
    uint8_t position_;
    unsigned blocks_read_ = 0;
};

/* Goes through those entries of a key that count, newest first; nullptr has
 * none. Every block but the first has at least one of them. */
class BackwardReader {
  public:
    BackwardReader(Cells cells, const KeyCell *key) noexcept
        : cells_(cells), key_(key), block_(key ? key->last_block : kNoCell),
          end_(key ? key->last_position : 0)
    {
        settle();
    }

    bool at_end() const noexcept { return block_ == kNoCell; }

    int64_t stamp() const noexcept
    {
        return cells_.block(block_).stamp(end_ - 1);
    }

    int64_t cost() const noexcept
    {
        return cells_.block(block_).cost(end_ - 1);
    }

    void next() noexcept
    {
        end_--;
        settle();
    }

  private:
    /* Goes back to where something counts. */
    void settle() noexcept
    {
        while (block_ != kNoCell) {
            const BlockCell &block = cells_.block(block_);
            bool is_first = block_ == key_->first_block;
            uint8_t first = is_first ? key_->first_position : 0;

            while (end_ > first && block.cost(end_ - 1) == 0) {
                end_--;
            }

            if (end_ > first) {
                return;
            }

            block_ = is_first ? kNoCell : block.earlier;
            end_ = is_first ? 0 : cells_.block(block_).size();
        }
    }

    Cells cells_;
    const KeyCell *key_;
    CellNumber block_;
    uint8_t end_; /* the position after the entry */
};

}  // namespace sl
