#include "store/pure/sl_memory_chain.h"

#include <cstring>

namespace sl {

namespace {

/* How many blocks of one key are dropped at a time. */
constexpr uint32_t kMaxBlocksDropped = 512;

}  // namespace

/* An empty one, after the last. */
BlockCell &Chain::add_block(CellTag tag) noexcept
{
    CellNumber number = cells_.take();
    BlockCell &added = cells_.block(number);

    memset(static_cast<void *>(&added), 0, sizeof(added));
    added.tag = tag;
    added.earlier = key_.last_block;
    in_this_order();

    if (key_.last_block != kNoCell) {
        cells_.block(key_.last_block).next = number;
    } else {
        key_.first_block = number;
        key_.first_position = 0;
    }

    key_.last_block = number;
    key_.last_position = 0;
    key_.block_count++;

    return added;
}

/* Some entries stay, but others in front of them do not. */
bool Chain::drop_some(int64_t last_expired) noexcept
{
    Entry entry{key_.first_block, key_.first_position};
    CellNumber last_dropped = kNoCell;
    uint32_t dropped = 0;
    bool is_done = false;

    while (!is_done && dropped < kMaxBlocksDropped) {
        const BlockCell &block = cells_.block(entry.block);
        bool is_last = entry.block == key_.last_block;
        uint8_t end = is_last ? key_.last_position : block.size();

        while (entry.position < end && !stays(entry, last_expired)) {
            key_.used -= block.cost(entry.position);
            entry.position++;
        }

        is_done = entry.position < end;

        if (!is_done && is_last) {
            clear();
            return true;
        }

        if (!is_done) {
            last_dropped = entry.block;
            dropped++;
            entry = Entry{block.next, 0};
        }
    }

    begin_at(entry, last_dropped, dropped);

    return is_done;
}

/* Gives back so many blocks before the one in which the chain begins now. */
void Chain::begin_at(Entry entry, CellNumber last_dropped,
                     uint32_t dropped) noexcept
{
    CellNumber first = key_.first_block;

    /* whoever finds this with the old block skips nothing that counts */
    key_.first_position = entry.position;

    if (dropped == 0) {
        return;
    }

    key_.block_count -= dropped;
    in_this_order();
    key_.first_block = entry.block;
    in_this_order();
    cells_.give(first, last_dropped, dropped);
}

void Chain::drop_oldest(int64_t units) noexcept
{
    while (units > 0) {
        Entry first{key_.first_block, key_.first_position};
        int64_t amount = std::min(units, cost_at(first));

        give_back(first, amount);
        units -= amount;
    }
}

void Chain::clear() noexcept
{
    CellNumber first = key_.first_block;
    CellNumber last = key_.last_block;
    uint32_t count = key_.block_count;

    key_.first_block = kNoCell;
    key_.last_block = kNoCell;
    key_.first_position = 0;
    key_.last_position = 0;
    key_.block_count = 0;
    key_.used = 0;

    if (first == kNoCell) {
        return;
    }

    /* from now on nobody could find them through the key */
    in_this_order();
    cells_.give(first, last, count);
}

/* Buckets are few: the oldest ones went when the newest one was counted. */
Entry Chain::find_bucket(int64_t stamp) const noexcept
{
    ChainReader reader(cells_, &key_);

    while (!reader.at_end() && reader.stamp() != stamp) {
        reader.next();
    }

    return reader.entry();
}

/* Not the first one: that goes when it is dropped from the front. */
void Chain::remove_block(CellNumber number) noexcept
{
    CellNumber earlier = cells_.block(number).earlier;
    CellNumber next = cells_.block(number).next;

    cells_.block(earlier).next = next;
    in_this_order();

    if (number == key_.last_block) {
        key_.last_block = earlier;
        key_.last_position = cells_.block(earlier).end();
    } else {
        cells_.block(next).earlier = earlier;
    }

    key_.block_count--;
    cells_.give(number);
}

}  // namespace sl
