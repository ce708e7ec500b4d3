/*
 * Walks through the whole of a table and checks what must hold whenever nobody
 * is changing it, as the headers of src/store/pure/sl_memory_* say.
 */

#pragma once

#include <algorithm>
#include <vector>

#include "fuzz.h"
#include "store/pure/sl_memory_chain.h"
#include "store/pure/sl_memory_keys.h"
#include "store/pure/sl_memory_lists.h"
#include "store/pure/sl_memory_rulings.h"

/* What this comes across is of no interest to the fuzzer, and would take most
 * of its time. */
#ifdef __clang__
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))),         \
                             apply_to = function)
#endif

class Walk {
  public:
    explicit Walk(sl::Cells cells)
        : cells_(cells), h_(cells.header()), is_seen_(h_.end_cell)
    {}

    /* Every cell is in one place, and every place is as it should be. */
    void check_all()
    {
        check(h_.in_change == 0);

        see_free_cells();
        see_keys();
        see_lists();
        see_rulings();

        for (CellNumber n = h_.first_cell; n < h_.end_cell; n++) {
            check(is_seen_[n]);
        }
    }

  private:
    using CellNumber = sl::CellNumber;
    using CellTag = sl::CellTag;
    using KeyCell = sl::KeyCell;
    using BlockCell = sl::BlockCell;

    sl::Cells cells_;
    const sl::TableHeader &h_;
    std::vector<uint8_t> is_seen_;

    void see(CellNumber number)
    {
        check(cells_.has(number));
        check(!is_seen_[number]);
        is_seen_[number] = true;
    }

    void see_free_cells()
    {
        CellNumber number = h_.free_head;

        for (uint32_t i = 0; i < h_.free_count; i++) {
            see(number);
            number = cells_.block(number).next;
        }

        check(number == sl::kNoCell);
    }

    void see_keys()
    {
        uint64_t keys = 0;

        for (uint32_t i = 0; i <= h_.hash_mask; i++) {
            CellNumber number = slot(i);

            for (; number != sl::kNoCell; number = cells_.key(number).hash_next)
            {
                const KeyCell &key = cells_.key(number);

                see(number);
                check(key.tag == CellTag::kKey);
                check(&cells_.slot_of(key.name) == &slot(i));
                check(is_first_of_its_name(number, slot(i)));
                see_chain(key);
                keys++;
            }
        }

        check(keys == h_.keys);
    }

    CellNumber &slot(uint32_t number)
    {
        sl::KeyName name{};

        memcpy(name.hash, &number, sizeof(number));

        return cells_.slot_of(name);
    }

    bool is_first_of_its_name(CellNumber number, CellNumber first)
    {
        const sl::KeyName &name = cells_.key(number).name;

        while (memcmp(cells_.key(first).name.hash, name.hash, sizeof(name.hash))
               != 0) {
            first = cells_.key(first).hash_next;
        }

        return first == number;
    }

    void see_chain(const KeyCell &key)
    {
        CellNumber number = key.first_block;
        CellNumber earlier = sl::kNoCell;
        int64_t used = 0;
        int64_t last_stamp = 0;

        for (uint32_t i = 0; i < key.block_count; i++) {
            see(number);

            const BlockCell &block = cells_.block(number);

            if (block.tag == CellTag::kRefusal) {
                check(key.block_count == 1);
            } else {
                check(i == 0 || block.earlier == earlier);
                used += read_block(key, number, i == 0, &last_stamp);
            }

            earlier = number;
            number = block.next;
        }

        check(key.last_block == earlier);
        check(key.block_count == 0 || number == sl::kNoCell);
        check(key.block_count != 0 || key.first_block == sl::kNoCell);
        check(used == key.used);
        check((used == 0) == (key.last_position == 0));
    }

    /* Returns what its entries cost. */
    int64_t read_block(const KeyCell &key, CellNumber number, bool is_first,
                       int64_t *last_stamp)
    {
        const BlockCell &block = cells_.block(number);
        uint8_t end =
            number == key.last_block ? key.last_position : block.size();
        int64_t used = 0;
        bool is_at_end = false;

        check(block.has_entries());
        check(end <= block.size());
        check(block.end() <= end);
        check(number != key.last_block || block.end() == end);

        for (uint8_t i = is_first ? key.first_position : 0; i < end; i++) {
            /* those behind the last one were never written */
            is_at_end = is_at_end || block.stamp(i) == 0;
            check(is_at_end ? block.stamp(i) == 0 && block.cost(i) == 0
                            : block.stamp(i) > *last_stamp);
            check(block.cost(i) >= 0);

            used += block.cost(i);
            *last_stamp = is_at_end ? *last_stamp : block.stamp(i);
        }

        check(is_first || used > 0);

        return used;
    }

    /* Those that rule something can be found, and nothing else is in the index
     * that does not belong there. */
    void see_rulings()
    {
        const sl::RulingsHeader &rulings = h_.rulings;
        std::vector<uint8_t> is_linked(rulings.last + 1);
        int64_t until_us = 0;

        check(rulings.last <= rulings.capacity);
        check(rulings.changing == 0);

        for (uint32_t i = 0; i <= rulings.index_mask; i++) {
            see_ruling_slot(i, &is_linked);
        }

        for (uint32_t n = 1; n <= rulings.last; n++) {
            int64_t ends_us = cells_.ruling(n).ruling.ends_us();

            check(ends_us <= h_.clock.now_us || is_linked[n]);
            until_us = std::max(until_us, ends_us);
        }

        check(rulings.until_us == until_us);
    }

    void see_ruling_slot(uint32_t slot, std::vector<uint8_t> *is_linked)
    {
        sl::KeyName in_slot{};

        memcpy(in_slot.hash, &slot, sizeof(slot));

        const uint32_t &first = cells_.ruling_slot_of(in_slot);

        for (uint32_t n = first; n != 0; n = cells_.ruling(n).next) {
            check(n <= h_.rulings.last);
            check(!(*is_linked)[n]);
            (*is_linked)[n] = true;

            const sl::RulingEntry &entry = cells_.ruling(n);

            check(&cells_.ruling_slot_of(entry.name) == &first);
            check(sl::Rulings(cells_).find(entry.name) == &entry.ruling);
            check(entry.zone_size >= 1 && entry.zone_size <= sl::kMaxZoneName);
            check(entry.key_size >= 1 && entry.key_size <= sl::kMaxReadableKey);
        }
    }

    void see_lists()
    {
        uint64_t keys = 0;
        uint64_t regulars = 0;

        for (unsigned list = 0; list < sl::IdleLists::kLists; list++) {
            CellNumber number = h_.oldest[list];
            CellNumber older = sl::kNoCell;

            while (number != sl::kNoCell) {
                check(cells_.has(number));

                const KeyCell &key = cells_.key(number);

                check(key.tag == CellTag::kKey);
                check(key.list == list);
                check(key.older == older);
                check(++keys <= h_.keys);
                regulars += sl::IdleLists::is_of_regulars(list);
                older = number;
                number = key.newer;
            }

            check(h_.newest[list] == older);
        }

        check(keys == h_.keys);
        check(regulars == h_.regulars);
    }
};

#ifdef __clang__
#pragma clang attribute pop
#endif
