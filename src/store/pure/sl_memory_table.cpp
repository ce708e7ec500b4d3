#include "store/pure/sl_memory_table.h"

#include <algorithm>

#include "store/pure/sl_memory_chain.h"
#include "store/pure/sl_memory_keys.h"
#include "store/pure/sl_memory_lists.h"
#include "store/pure/sl_memory_recovery.h"
#include "store/pure/sl_stamp.h"

namespace sl {

namespace {

/* How many blocks are read to find out when enough will have left. */
constexpr unsigned kMaxBlocksRead = 512;

/* One limit of a request that is being decided about. */
struct Asked {
    KeyName name;
    CellNumber key; /* kNoCell: not there yet */

    /* The same for requests that were refused, if those count. */
    KeyName refused_name;
    CellNumber refused_key;

    int64_t used;
    uint64_t place; /* of what was counted; see LimitState */
    bool admits;
    bool is_counted;
};

/* A request that is being decided about; `asked` has room for its limits. */
class Question {
  public:
    Question(Cells cells, const LimitQuery *limits, size_t count,
             int64_t now_us, Asked *asked) noexcept
        : cells_(cells), keys_(cells), limits_(limits), count_(count),
          now_us_(now_us), asked_(asked)
    {}

    void expire_idle() const noexcept;

    /* Finds out which limits admit the request. False if there is more to drop
     * first than may be at a time. */
    bool read() noexcept;

    /* Sees to it that it can be counted; false if there is no memory. */
    bool make_room() const noexcept;

    void count(LimitState *states) noexcept;

  private:
    bool read(const LimitQuery &limit, Asked *asked) noexcept;
    void count(const LimitQuery &limit, Asked *asked) noexcept;
    int64_t wait(const LimitQuery &limit, const Asked &asked) const noexcept;

    ChainReader reader(CellNumber key) const noexcept
    {
        return {cells_, key != kNoCell ? &cells_.key(key) : nullptr};
    }

    Cells cells_;
    Keys keys_;
    const LimitQuery *limits_;
    size_t count_;
    int64_t now_us_;
    Asked *asked_;
};

void Question::expire_idle() const noexcept
{
    for (size_t i = 0; i < count_; i++) {
        keys_.expire_idle(limits_[i].window_us);
    }
}

bool Question::read() noexcept
{
    bool is_admitted = true;

    for (size_t i = 0; i < count_; i++) {
        if (!read(limits_[i], &asked_[i])) {
            return false;
        }

        is_admitted = is_admitted && (asked_[i].admits || limits_[i].dry_run);
    }

    for (size_t i = 0; i < count_; i++) {
        asked_[i].is_counted = asked_[i].admits
                                   ? is_admitted && limits_[i].cost > 0
                                   : limits_[i].counts_refused;
    }

    return true;
}

bool Question::read(const LimitQuery &limit, Asked *asked) noexcept
{
    asked->used = 0;
    asked->place = kNoPlace;
    asked->name = keys_.name_of(limit, KeyOf::kCounted);
    asked->key = keys_.find(asked->name);
    asked->refused_key = kNoCell;

    if (limit.counts_refused && limit.buckets == 0) {
        asked->refused_name = keys_.name_of(limit, KeyOf::kRefused);
        asked->refused_key = keys_.find(asked->refused_name);
    }

    for (CellNumber number : {asked->key, asked->refused_key}) {
        if (number == kNoCell) {
            continue;
        }

        KeyCell &key = cells_.key(number);

        IdleLists(cells_).touch(number);

        if (!Chain(cells_, key).drop_front(last_expired(limit, now_us_))) {
            return false;
        }

        asked->used += key.used;
    }

    asked->admits = limit.cost == 0 || asked->used + limit.cost <= limit.max;

    return true;
}

bool Question::make_room() const noexcept
{
    CellNumber spared[2 * kMaxLimits];
    uint32_t needed = 0;

    for (size_t i = 0; i < count_; i++) {
        spared[2 * i] = asked_[i].key;
        spared[2 * i + 1] = asked_[i].refused_key;

        /* a key and a block, if they are not there */
        needed += asked_[i].is_counted ? 2 : 0;
    }

    return keys_.make_room(needed, spared, 2 * count_);
}

void Question::count(LimitState *states) noexcept
{
    for (size_t i = 0; i < count_; i++) {
        Asked &a = asked_[i];

        if (a.is_counted) {
            count(limits_[i], &a);
        }

        states[i] = LimitState{a.admits, a.admits && a.is_counted, a.used,
                               wait(limits_[i], a), a.place};
    }
}

void Question::count(const LimitQuery &limit, Asked *asked) noexcept
{
    bool is_refused = !asked->admits && limit.buckets == 0;
    CellNumber &number = is_refused ? asked->refused_key : asked->key;

    if (number == kNoCell) {
        number = keys_.add(is_refused ? asked->refused_name : asked->name,
                           limit.window_us);
    }

    KeyCell &key = cells_.key(number);
    Chain chain(cells_, key);
    int64_t stamp = stamp_of(limit, now_us_);

    asked->place = chain.append(stamp, limit.cost, limit.buckets != 0).place();
    asked->used += limit.cost;
    key.expires_us = leaves_at(limit, stamp);

    /* more than max refused requests make no difference; if max has become
     * much smaller, the rest of them goes with the next ones */
    if (is_refused) {
        asked->used -= chain.drop_surplus(limit.max);
    }
}

/*
 * How long it takes until so much has left that a request would be admitted, or
 * until the oldest one has left if it was; kNoWait if nothing is counted. After
 * many blocks that is too short, and whoever comes back then is told the rest.
 */
int64_t Question::wait(const LimitQuery &limit,
                       const Asked &asked) const noexcept
{
    ChainReader counted = reader(asked.key);
    ChainReader refused = reader(asked.refused_key);
    int64_t amount = asked.admits ? 1 : asked.used + limit.cost - limit.max;
    int64_t left = 0;
    int64_t last = 0;

    while (!counted.at_end() || !refused.at_end()) {
        bool is_refused =
            counted.at_end()
            || (!refused.at_end() && refused.stamp() < counted.stamp());
        ChainReader &first = is_refused ? refused : counted;

        if (first.cost() > 0) {
            left += first.cost();
            last = first.stamp();
        }

        first.next();

        if (left >= amount
            || counted.blocks_read() + refused.blocks_read() > kMaxBlocksRead)
        {
            break;
        }
    }

    return last != 0 ? leaves_at(limit, last) - now_us_ : kNoWait;
}

}  // namespace

Decided MemoryTable::ask(const LimitQuery *limits, size_t count,
                         int64_t clock_us, LimitState *states,
                         int64_t *time_us) noexcept
{
    Change change(cells_);
    TableHeader &header = cells_.header();
    int64_t now_us =
        std::max(header.clock.set(clock_us), header.last_stamp_us + 1);
    Asked asked[kMaxLimits];
    Question question(cells_, limits, count, now_us, asked);

    question.expire_idle();

    if (!question.read()) {
        return Decided::kNotYet;
    }

    *time_us = now_us;
    header.last_stamp_us = now_us;
    in_this_order();

    if (!question.make_room()) {
        return Decided::kNoMemory;
    }

    question.count(states);

    return Decided::kYes;
}

void MemoryTable::take_back(const LimitQuery *limits, size_t count,
                            int64_t time_us) noexcept
{
    Change change(cells_);
    Keys keys(cells_);

    for (size_t i = 0; i < count; i++) {
        const LimitQuery &limit = limits[i];
        CellNumber number = keys.find(keys.name_of(limit, KeyOf::kCounted));

        if (number == kNoCell) {
            continue;
        }

        Chain chain(cells_, cells_.key(number));
        int64_t stamp = stamp_of(limit, time_us);
        Entry entry = limit.buckets ? chain.find_bucket(stamp)
                                    : chain.find(limit.place, stamp);

        if (entry.block != kNoCell) {
            chain.take_back(entry, limit.cost);
        }
    }
}

void MemoryTable::leave_half_done() noexcept
{
    cells_.header().in_change.store(1);
}

TableStats MemoryTable::stats() const noexcept
{
    const TableHeader &h = cells_.header();

    return TableStats{h.end_cell - h.first_cell, h.free_count, h.keys,
                      h.evictions, h.recoveries};
}

}  // namespace sl
