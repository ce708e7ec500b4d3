#include "store/pure/sl_memory_table.h"

#include <algorithm>

#include "store/pure/sl_memory_chain.h"
#include "store/pure/sl_memory_deed.h"
#include "store/pure/sl_memory_keys.h"
#include "store/pure/sl_memory_lists.h"
#include "store/pure/sl_memory_recovery.h"
#include "store/pure/sl_stamp.h"

namespace sl {

namespace {

/* How many blocks are read to find out when enough will have left. */
constexpr unsigned kMaxBlocksRead = 512;

/* How many units go at a time because newer ones decide. */
constexpr int64_t kMaxUnitsDropped = 1000;

/* For waits: there is no such moment. */
constexpr int64_t kNever = INT64_MAX;

/* One limit of a request that is being decided about. */
struct Asked {
    KeyName name;
    CellNumber key; /* kNoCell: not there yet */

    /* nullptr: nothing is ruled about the client. */
    const Ruling *ruling;

    int64_t max; /* that the client has now */
    int64_t used;
    uint64_t place; /* of what was counted; see LimitState */
    bool fits;
    bool is_banned;
    bool is_counted;

    bool admits() const noexcept { return fits && !is_banned; }
};

/* A request that is being decided about; `asked` has room for its limits. */
class Question {
  public:
    Question(Cells cells, const LimitQuery *limits, size_t count,
             int64_t now_us, Asked *asked) noexcept
        : cells_(cells), keys_(cells), limits_(limits), count_(count),
          now_us_(now_us), asked_(asked),
          are_rulings_(Rulings(cells).are_any(now_us))
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
    void find_ruling(const LimitQuery &limit, Asked *asked) const noexcept;
    LimitState state(const LimitQuery &limit,
                     const Asked &asked) const noexcept;
    int64_t wait(const LimitQuery &limit, const Asked &asked) const noexcept;
    int64_t ruled_wait(const LimitQuery &limit,
                       const Asked &asked) const noexcept;
    int64_t wait_for_room(const LimitQuery &limit, const Asked &asked,
                          int64_t max) const noexcept;
    int64_t wait_until_left(const LimitQuery &limit, const Asked &asked,
                            int64_t amount) const noexcept;

    Cells cells_;
    Keys keys_;
    const LimitQuery *limits_;
    size_t count_;
    int64_t now_us_;
    Asked *asked_;
    bool are_rulings_;
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

        is_admitted = is_admitted && (asked_[i].admits() || limits_[i].dry_run);
    }

    for (size_t i = 0; i < count_; i++) {
        asked_[i].is_counted =
            asked_[i].admits()
                ? is_admitted && limits_[i].cost > 0
                : limits_[i].counts_refused && !asked_[i].is_banned
                      && asked_[i].used + limits_[i].cost <= kMostUsed;
    }

    return true;
}

bool Question::read(const LimitQuery &limit, Asked *asked) noexcept
{
    asked->used = 0;
    asked->place = kNoPlace;
    asked->name = keys_.name_of(limit, KeyOf::kCounted);
    asked->key = keys_.find(asked->name);
    asked->ruling = nullptr;
    asked->max = limit.max;
    asked->is_banned = false;

    if (are_rulings_) {
        find_ruling(limit, asked);
    }

    if (asked->key != kNoCell) {
        KeyCell &key = cells_.key(asked->key);

        IdleLists(cells_).touch(asked->key);

        if (!Chain(cells_, key).drop_front(last_expired(limit, now_us_))) {
            return false;
        }

        asked->used = key.used;
    }

    asked->fits = limit.cost == 0 || asked->used + limit.cost <= asked->max;

    return true;
}

void Question::find_ruling(const LimitQuery &limit, Asked *asked) const noexcept
{
    Rulings rulings(cells_);

    /* a log has the same name */
    asked->ruling =
        rulings.find(limit.buckets == 0 ? asked->name : rulings.name_of(limit));

    if (asked->ruling != nullptr) {
        asked->max = asked->ruling->max_for(limit.max, now_us_);
        asked->is_banned = asked->ruling->bans(now_us_);
    }
}

bool Question::make_room() const noexcept
{
    CellNumber spared[kMaxLimits];
    uint32_t needed = 0;

    for (size_t i = 0; i < count_; i++) {
        spared[i] = asked_[i].key;

        /* a key and a block, if they are not there */
        needed += asked_[i].is_counted ? 2 : 0;
    }

    return keys_.make_room(needed, spared, count_);
}

void Question::count(LimitState *states) noexcept
{
    for (size_t i = 0; i < count_; i++) {
        Asked &a = asked_[i];

        if (a.is_counted) {
            count(limits_[i], &a);
        }

        states[i] = state(limits_[i], a);
    }
}

LimitState Question::state(const LimitQuery &limit,
                           const Asked &asked) const noexcept
{
    bool is_overridden =
        asked.ruling != nullptr && asked.ruling->overrides(now_us_);

    return LimitState{asked.admits(), asked.admits() && asked.is_counted,
                      asked.used,     wait(limit, asked),
                      asked.place,    is_overridden ? asked.max : kOwnMax,
                      asked.is_banned};
}

void Question::count(const LimitQuery &limit, Asked *asked) noexcept
{
    if (asked->key == kNoCell) {
        asked->key = keys_.add(asked->name, limit.window_us);
    }

    KeyCell &key = cells_.key(asked->key);
    Chain chain(cells_, key);
    int64_t stamp = stamp_of(limit, now_us_);

    asked->place = chain.append(stamp, limit.cost, limit.buckets != 0).place();
    key.expires_us = leaves_at(limit, stamp);

    /* The newest max units decide; an override may end, and then the limit's
     * own max says how many. If either has become much smaller, the rest goes
     * with the next ones. */
    if (!asked->admits() && limit.buckets == 0) {
        int64_t surplus = key.used - std::max(limit.max, asked->max);

        chain.drop_oldest(std::min(surplus, kMaxUnitsDropped));
    }

    asked->used = key.used;
}

/* Until the request would be admitted, or if it is, until anything leaves. */
int64_t Question::wait(const LimitQuery &limit,
                       const Asked &asked) const noexcept
{
    if (asked.admits()) {
        return wait_until_left(limit, asked, 1);
    }

    if (asked.ruling != nullptr) {
        return ruled_wait(limit, asked);
    }

    return wait_until_left(limit, asked, asked.used + limit.cost - limit.max);
}

/* A client that has another max has it only for a while, and is measured by the
 * limit's own after that; one that is banned must wait for both. */
int64_t Question::ruled_wait(const LimitQuery &limit,
                             const Asked &asked) const noexcept
{
    const Ruling &ruling = *asked.ruling;
    int64_t wait_us = 0;

    if (!asked.fits) {
        wait_us = wait_for_room(limit, asked, asked.max);
    }

    if (!asked.fits && ruling.overrides(now_us_)) {
        int64_t left_us = ruling.max_until_us - now_us_;

        if (wait_us > left_us) {
            wait_us = std::max(left_us, wait_for_room(limit, asked, limit.max));
        }
    }

    if (asked.is_banned) {
        wait_us = std::max(wait_us, ruling.ban_until_us - now_us_);
    }

    return wait_us != kNever ? wait_us : kNoWait;
}

int64_t Question::wait_for_room(const LimitQuery &limit, const Asked &asked,
                                int64_t max) const noexcept
{
    if (limit.cost > max) {
        return kNever;
    }

    int64_t amount = asked.used + limit.cost - max;

    return amount > 0 ? wait_until_left(limit, asked, amount) : 0;
}

/*
 * How long it takes until so much has left; kNoWait if nothing is counted.
 * After many blocks that is too short, and whoever comes back then is told the
 * rest.
 */
int64_t Question::wait_until_left(const LimitQuery &limit, const Asked &asked,
                                  int64_t amount) const noexcept
{
    ChainReader reader(cells_,
                       asked.key != kNoCell ? &cells_.key(asked.key) : nullptr);
    int64_t left = 0;
    int64_t last = 0;

    while (!reader.at_end() && left < amount
           && reader.blocks_read() <= kMaxBlocksRead)
    {
        if (reader.cost() > 0) {
            left += reader.cost();
            last = reader.stamp();
        }

        reader.next();
    }

    return last != 0 ? leaves_at(limit, last) - now_us_ : kNoWait;
}

/* A request that is being settled. */
class Settling {
  public:
    Settling(Cells cells, const LimitQuery *limits, size_t count) noexcept
        : cells_(cells), keys_(cells), limits_(limits), count_(count)
    {}

    /* Gives back what was counted at that time and has cost less. */
    void lower(int64_t time_us) const noexcept;

    /* Whether something has cost more. */
    bool raises() const noexcept;

    /* Counts what has cost more; false if there is no memory. */
    bool raise(int64_t now_us) const noexcept;

  private:
    static bool raises(const LimitQuery &limit) noexcept
    {
        return limit.true_cost > limit.cost;
    }

    CellNumber find(const LimitQuery &limit) const noexcept
    {
        return keys_.find(keys_.name_of(limit, KeyOf::kCounted));
    }

    void lower(const LimitQuery &limit, int64_t time_us) const noexcept;
    void raise(const LimitQuery &limit, int64_t now_us) const noexcept;

    Cells cells_;
    Keys keys_;
    const LimitQuery *limits_;
    size_t count_;
};

void Settling::lower(int64_t time_us) const noexcept
{
    for (size_t i = 0; i < count_; i++) {
        if (limits_[i].true_cost < limits_[i].cost) {
            lower(limits_[i], time_us);
        }
    }
}

/* Whose count it is can be told in a log, and is not the same any more if it
 * was settled before, or if some of it was dropped: then there is nothing to
 * settle, but the rest can be taken back. A bucket has all that was counted in
 * it. */
void Settling::lower(const LimitQuery &limit, int64_t time_us) const noexcept
{
    CellNumber number = find(limit);

    if (number == kNoCell) {
        return;
    }

    Chain chain(cells_, cells_.key(number));
    int64_t stamp = stamp_of(limit, time_us);
    Entry entry = limit.buckets ? chain.find_bucket(stamp)
                                : chain.find(limit.place, stamp);

    if (entry.block != kNoCell
        && (limit.buckets || limit.true_cost == 0
            || chain.cost_at(entry) == limit.cost))
    {
        chain.give_back(entry, limit.cost - limit.true_cost);
    }
}

bool Settling::raises() const noexcept
{
    return std::any_of(limits_, limits_ + count_,
                       [](const LimitQuery &limit) { return raises(limit); });
}

bool Settling::raise(int64_t now_us) const noexcept
{
    CellNumber spared[kMaxLimits];
    uint32_t needed = 0;

    for (size_t i = 0; i < count_; i++) {
        spared[i] = raises(limits_[i]) ? find(limits_[i]) : kNoCell;

        /* a key and a block, if they are not there */
        needed += raises(limits_[i]) ? 2 : 0;
    }

    if (!keys_.make_room(needed, spared, count_)) {
        return false;
    }

    for (size_t i = 0; i < count_; i++) {
        if (raises(limits_[i])) {
            raise(limits_[i], now_us);
        }
    }

    return true;
}

void Settling::raise(const LimitQuery &limit, int64_t now_us) const noexcept
{
    KeyName name = keys_.name_of(limit, KeyOf::kCounted);
    CellNumber number = keys_.find(name);

    if (number != kNoCell) {
        /* whatever is left of that has time until somebody asks */
        Chain(cells_, cells_.key(number))
            .drop_front(last_expired(limit, now_us));
    }

    int64_t used = number != kNoCell ? cells_.key(number).used : 0;
    int64_t amount = std::min(limit.true_cost - limit.cost, kMostUsed - used);

    if (amount <= 0) {
        return;
    }

    if (number == kNoCell) {
        number = keys_.add(name, limit.window_us);
    } else {
        IdleLists(cells_).touch(number);
    }

    KeyCell &key = cells_.key(number);
    int64_t stamp = stamp_of(limit, now_us);

    Chain(cells_, key).append(stamp, amount, limit.buckets != 0);
    key.expires_us = leaves_at(limit, stamp);
}

}  // namespace

Decided MemoryTable::ask(const LimitQuery *limits, size_t count,
                         int64_t clock_us, LimitState *states,
                         int64_t *time_us) noexcept
{
    Change change(cells_);
    int64_t now_us = next_stamp(clock_us);
    Asked asked[kMaxLimits];
    Question question(cells_, limits, count, now_us, asked);

    question.expire_idle();

    if (!question.read()) {
        return Decided::kNotYet;
    }

    *time_us = now_us;
    cells_.header().last_stamp_us = now_us;
    in_this_order();

    if (!question.make_room()) {
        return Decided::kNoMemory;
    }

    question.count(states);

    return Decided::kYes;
}

Decided MemoryTable::settle(const LimitQuery *limits, size_t count,
                            int64_t time_us, int64_t clock_us) noexcept
{
    Change change(cells_);
    Settling settling(cells_, limits, count);

    settling.lower(time_us);

    if (!settling.raises()) {
        return Decided::kYes;
    }

    int64_t now_us = next_stamp(clock_us);

    cells_.header().last_stamp_us = now_us;
    in_this_order();

    return settling.raise(now_us) ? Decided::kYes : Decided::kNoMemory;
}

int64_t MemoryTable::next_stamp(int64_t clock_us) noexcept
{
    TableHeader &header = cells_.header();

    return std::max(header.clock.set(clock_us), header.last_stamp_us + 1);
}

int64_t MemoryTable::set_clock(int64_t clock_us) noexcept
{
    TableHeader &header = cells_.header();

    return std::max(header.clock.set(clock_us), header.last_stamp_us);
}

Decided MemoryTable::intervene(const LimitQuery &client,
                               const Intervention &intervention,
                               int64_t clock_us, Standing *standing) noexcept
{
    Change change(cells_);
    Deed deed(cells_, client, set_clock(clock_us));

    if (intervention.act == Act::kForget) {
        deed.forget_counts();
    } else if (!deed.drop_expired()) {
        return Decided::kNotYet;
    }

    if (!deed.rule(intervention)) {
        return Decided::kNoMemory;
    }

    deed.tell(standing);

    return Decided::kYes;
}

void MemoryTable::list_rulings(std::string_view zone, uint32_t from,
                               int64_t clock_us, RulingsPage *page) noexcept
{
    Change change(cells_);

    Rulings(cells_).list(zone, from, set_clock(clock_us), page);
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
