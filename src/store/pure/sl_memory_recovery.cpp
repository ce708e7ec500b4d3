#include "store/pure/sl_memory_recovery.h"

#include <cstring>

#include "store/pure/sl_memory_keys.h"
#include "store/pure/sl_memory_lists.h"

namespace sl {

namespace {

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

/*
 * Finds the blocks of a key again, as far as they are whole, and marks them as
 * reached. What is in the last one shows in the stamps.
 */
void recover_chain(Cells cells, KeyCell *key)
{
    CellNumber next = key->first_block;
    uint8_t position = key->first_position;

    key->last_block = kNoCell;
    key->last_position = 0;
    key->block_count = 0;
    key->used = 0;

    while (cells.has(next) && cells.block(next).has_entries()) {
        BlockCell &block = cells.block(next);
        uint8_t end = block.end();

        /* whatever it was: to count what has expired does no harm */
        if (position >= block.size()) {
            position = 0;
            key->first_position = 0;
        }

        for (; position < end; position++) {
            key->used += block.cost(position);
        }

        if (key->last_block != kNoCell) {
            cells.block(key->last_block).next = next;
        }

        block.tag = block.tag == CellTag::kOnes ? CellTag::kReachedOnes
                                                : CellTag::kReachedWeighted;
        block.earlier = key->last_block;
        key->last_block = next;
        key->last_position = end;
        key->block_count++;
        position = 0;
        next = block.next;
    }

    if (key->last_block != kNoCell) {
        cells.block(key->last_block).next = kNoCell;
    }
}

void free_with_chain(Cells cells, KeyCell *key)
{
    CellNumber number = key->first_block;

    for (; key->block_count > 0; key->block_count--) {
        BlockCell &block = cells.block(number);

        block.tag = CellTag::kFree;
        number = block.next;
    }

    key->tag = CellTag::kFree;
}

void recover_key(Cells cells, CellNumber number)
{
    KeyCell &key = cells.key(number);
    uint32_t touched_s = key.touched_s;

    recover_chain(cells, &key);

    /* a key without counts has nothing to remember; it may be half made */
    if (key.used <= 0 || key.list >= IdleLists::kLists) {
        free_with_chain(cells, &key);
        return;
    }

    Keys(cells).link(number);
    key.touched_s = touched_s;
}

}  // namespace

void rebuild(Cells cells) noexcept
{
    TableHeader &h = cells.header();

    h.recoveries++;
    h.keys = 0;
    h.regulars = 0;
    h.free_head = kNoCell;
    h.free_count = 0;
    memset(h.newest, 0, sizeof(h.newest));
    memset(h.oldest, 0, sizeof(h.oldest));
    cells.clear_slots();

    /* somebody may have been killed while rebuilding */
    unmark_reached(cells);

    for_each_cell(cells, [cells](CellNumber n) {
        if (cells.key(n).tag == CellTag::kKey) {
            recover_key(cells, n);
        }
    });

    for_each_cell(cells, [cells](CellNumber n) {
        if (cells.key(n).tag != CellTag::kKey && !is_reached(cells.block(n))) {
            cells.give(n);
        }
    });

    unmark_reached(cells);
}

}  // namespace sl
