#include "store/pure/sl_memory_keys.h"

#include <algorithm>

#include "store/pure/sl_memory_chain.h"
#include "store/pure/sl_memory_lists.h"
#include "store/pure/sl_stamp.h"
#include "store/pure/sl_zone_name.h"

namespace sl {

/*
 * Before the client's key stands all that it must not be mixed up with. The
 * first word says what follows, so that nothing can be taken for something
 * else.
 */
KeyName Keys::name_of(const LimitQuery &limit, KeyOf what) const noexcept
{
    constexpr size_t kZoneWords = (kMaxZoneName + 7) / 8;
    uint64_t head[1 + kZoneWords + 6];
    size_t zone_size = std::min(limit.zone.size(), kMaxZoneName);
    size_t words = 1 + (zone_size + 7) / 8;

    head[words - 1] = 0;
    memcpy(head + 1, limit.zone.data(), zone_size);
    head[0] = static_cast<uint64_t>(what) | zone_size << 8;
    head[words++] =
        limit.buckets ? static_cast<uint64_t>(bucket_width(limit)) : 0;

    /* counts outlive a change of these, what was said about them does not */
    if (what == KeyOf::kRefusal) {
        head[words++] = limit.refusal_mark;
        head[words++] = static_cast<uint64_t>(limit.window_us);
        head[words++] = static_cast<uint64_t>(limit.max);
        head[words++] = static_cast<uint64_t>(limit.cost);
        head[words++] = static_cast<uint64_t>(limit.algorithm);
    }

    KeyName name;

    siphash128(head, words, limit.key, cells_.header().secret, name.hash);

    return name;
}

CellNumber Keys::add(const KeyName &name, int64_t lasts_us) const noexcept
{
    CellNumber number = cells_.take();
    KeyCell &key = cells_.key(number);

    memset(static_cast<void *>(&key), 0, sizeof(key));
    key.name = name;
    key.list = IdleLists::list_of(lasts_us);
    in_this_order();
    key.tag = CellTag::kKey;
    link(number);

    return number;
}

void Keys::link(CellNumber number) const noexcept
{
    KeyCell &key = cells_.key(number);
    CellNumber &slot = cells_.slot_of(key.name);

    key.hash_next = slot;
    slot = number;
    cells_.header().keys++;
    IdleLists(cells_).add(number);
}

void Keys::remove(CellNumber number) const noexcept
{
    KeyCell &key = cells_.key(number);
    CellNumber *link = &cells_.slot_of(key.name);

    while (*link != number) {
        link = &cells_.key(*link).hash_next;
    }

    *link = key.hash_next;
    IdleLists(cells_).remove(number);
    Chain(cells_, key).clear();
    cells_.give(number);
    cells_.header().keys--;
}

void Keys::expire_idle(int64_t lasts_us) const noexcept
{
    IdleLists lists(cells_);
    unsigned list = IdleLists::list_of(lasts_us);

    /* new ones, and regulars */
    for (unsigned i = 0; i < 2; i++) {
        CellNumber number = lists.expired(list + i);

        if (number != kNoCell) {
            remove(number);
        }
    }
}

bool Keys::make_room(uint32_t cells, const CellNumber *spared,
                     size_t count) const noexcept
{
    IdleLists lists(cells_);

    while (cells_.header().free_count < cells) {
        CellNumber number = lists.least_wanted(spared, count);

        if (number == kNoCell) {
            return false;
        }

        if (!lists.is_expired(number)) {
            cells_.header().evictions++;
        }

        remove(number);
    }

    return true;
}

}  // namespace sl
