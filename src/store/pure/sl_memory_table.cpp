#include "store/pure/sl_memory_table.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <new>

#include "base/pure/sl_siphash.h"
#include "store/pure/sl_zone_name.h"

namespace sl {

namespace {

constexpr uint32_t kNone = 0;

/*
 * Keys are listed by how long they matter, 100 ms to 31 days by powers of two,
 * and by whether they have been asked about more than once: a flood of clients
 * that come only once must not drive out those who keep coming.
 */
constexpr unsigned kLists = 64;

/* Of four keys so many may be kept as regulars. */
constexpr uint64_t kRegulars = 3;

/* How many blocks are read to find out when enough will have left. */
constexpr unsigned kMaxBlocksRead = 512;

/* How many blocks of one key are dropped at a time. */
constexpr uint32_t kMaxBlocksDropped = 512;

/* Refused requests that are dropped at most when another one is counted. */
constexpr unsigned kMaxSurplusDropped = 64;

/* Idle keys that are removed at most for each limit that is asked about. */
constexpr unsigned kIdlePerLimit = 2;

/* A clock that is being set right may run faster than ours by this part. */
constexpr int64_t kPartsOfDrift = 1000;

/* A block has four bytes for what it is, and which one stands before it. */
constexpr unsigned kTagBits = 3;
constexpr unsigned kNumberBits = 32 - kTagBits;

enum class Tag : uint8_t {
    kFree,
    kKey,
    kOnes,
    kWeighted,
    kRefusal,

    /* While rebuilding: a block that belongs to a key. */
    kReachedOnes,
    kReachedWeighted,
};

/* What stands before it is in memory before what stands behind it. */
void in_this_order()
{
    std::atomic_signal_fence(std::memory_order_seq_cst);
}

/* Of those who have come once; the regulars' list is the next one. */
uint8_t list_of(int64_t window_us)
{
    uint8_t list = 0;

    for (uint64_t w = static_cast<uint64_t>(window_us) >> 16; w; w >>= 1) {
        list += 2;
    }

    return list;
}

bool is_of_regulars(unsigned list)
{
    return list % 2 == 1;
}

/* Of one bucket: all of them are at least a window. */
int64_t width_of(const LimitQuery &limit)
{
    return (limit.window_us + limit.buckets - 1) / limit.buckets;
}

/*
 * What an entry of that time bears: the time itself, or its bucket's number,
 * counted from 1 because 0 is what has not been written.
 */
int64_t stamp_of(const LimitQuery &limit, int64_t time_us)
{
    return limit.buckets ? time_us / width_of(limit) + 1 : time_us;
}

/* When an entry leaves the window; a bucket does as a whole. */
int64_t leaves_at(const LimitQuery &limit, int64_t stamp)
{
    return limit.buckets ? (stamp + limit.buckets) * width_of(limit)
                         : stamp + limit.window_us;
}

/* No entry stays in the window for longer. */
int64_t longest_wait(const LimitQuery &limit)
{
    return limit.buckets ? (limit.buckets + 1) * width_of(limit)
                         : limit.window_us;
}

/* The latest stamp that has left it by now. */
int64_t last_expired(const LimitQuery &limit, int64_t now_us)
{
    return limit.buckets ? now_us / width_of(limit) - limit.buckets
                         : now_us - limit.window_us;
}

}  // namespace

struct MemoryTable::Header {
    uint32_t first_cell;
    uint32_t cell_count; /* the number after the last cell */
    uint32_t hash_mask;
    uint32_t free_head;
    uint32_t free_count;

    /* Of each list: the key touched last, and the one that waits longest. */
    uint32_t newest[kLists];
    uint32_t oldest[kLists];

    /* 1 while somebody changes something. */
    std::atomic<uint32_t> in_change;

    /* The table's time when somebody last told it the clock's. */
    int64_t now_us;

    /* By how much it is ahead of the clock, for all that this stepped back. */
    int64_t ahead_us;

    /* Of the last request: no two have the same. */
    int64_t last_stamp_us;

    uint64_t keys;
    uint64_t regulars;
    uint64_t evictions;
    uint64_t recoveries;
    uint8_t secret[kSecretSize];
};

struct MemoryTable::Name {
    uint8_t hash[kSipHashSize];
};

/* A client in a zone, and the chain of blocks with its requests, oldest first.
 */
struct MemoryTable::Key {
    Tag tag;
    uint8_t list;
    uint8_t first_position; /* of the first entry, in the first block */
    uint8_t last_position;  /* after the last entry, in the last block */
    CellNumber hash_next;
    CellNumber older; /* neighbours in its list */
    CellNumber newer;
    Name name;
    CellNumber first_block;
    CellNumber last_block;
    uint32_t block_count;
    uint32_t touched_s;
    int64_t used;
    int64_t expires_us;
};

/* By another store, which was asked `since`. */
struct MemoryTable::Refusal {
    int64_t used;
    int64_t since_us;
    int64_t until_us;

    /* When somebody was last told to ask again. */
    int64_t checked_us;
};

struct MemoryTable::Block {
    struct Weighted {
        int64_t stamp;
        int64_t cost;
    };

    static constexpr uint8_t kOnesSize = 7;
    static constexpr uint8_t kWeightedSize = 3;

    Tag tag : kTagBits;
    CellNumber earlier : kNumberBits; /* if it is not the first of its key */
    CellNumber next;                  /* also of free cells */

    union {
        /* Stamps of requests that cost 1; negative: taken back. */
        int64_t ones[kOnesSize];

        Weighted weighted[kWeightedSize];

        Refusal refusal;
    };

    uint8_t size() const noexcept
    {
        return tag == Tag::kOnes ? kOnesSize : kWeightedSize;
    }

    int64_t stamp(uint8_t i) const noexcept
    {
        if (tag != Tag::kOnes) {
            return weighted[i].stamp;
        }

        return ones[i] < 0 ? -ones[i] : ones[i];
    }

    int64_t cost(uint8_t i) const noexcept
    {
        return tag == Tag::kOnes ? ones[i] > 0 : weighted[i].cost;
    }

    /* After the last one that has been written. */
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

/* Where a request is counted; a block of kNone: nowhere. */
struct MemoryTable::Entry {
    CellNumber block;
    uint8_t position;

    static Entry at(uint64_t place) noexcept
    {
        return Entry{static_cast<CellNumber>(place >> 8),
                     static_cast<uint8_t>(place)};
    }

    uint64_t place() const noexcept
    {
        return static_cast<uint64_t>(block) << 8 | position;
    }
};

/* One limit of the request that is being decided about. */
struct MemoryTable::Asked {
    Name name;
    CellNumber key; /* kNone: not there yet */

    /* The same for requests that were refused, if those count. */
    Name refused_name;
    CellNumber refused_key;

    int64_t now_us;
    int64_t used;
    uint64_t place; /* of what was counted; see LimitState */
    bool admits;
    bool is_counted;
};

/* Among those that are being asked about. */
bool MemoryTable::is_asked(CellNumber number, const Asked *asked,
                           size_t count) noexcept
{
    for (size_t i = 0; i < count; i++) {
        if (asked[i].key == number || asked[i].refused_key == number) {
            return true;
        }
    }

    return false;
}

/*
 * Leaves a mark while the memory is in between two states. Whoever finds one
 * puts things right first.
 */
class MemoryTable::Change {
  public:
    explicit Change(MemoryTable &table) noexcept : header_(table.header())
    {
        if (header_.in_change.load(std::memory_order_acquire)) {
            table.recover();
        }

        header_.in_change.store(1, std::memory_order_relaxed);
        in_this_order();
    }

    ~Change()
    {
        in_this_order();
        header_.in_change.store(0, std::memory_order_release);
    }

    Change(const Change &) = delete;
    Change &operator=(const Change &) = delete;

  private:
    Header &header_;
};

/* Goes through the entries of a key, oldest first. */
class MemoryTable::Cursor {
  public:
    Cursor(const MemoryTable &table, CellNumber key) noexcept
        : table_(table), key_(key != kNone ? &table.key_at(key) : nullptr),
          block_(key_ ? key_->first_block : kNone),
          position_(key_ ? key_->first_position : 0)
    {
        settle();
    }

    bool at_end() const noexcept { return block_ == kNone; }

    int64_t stamp() const noexcept
    {
        return table_.block_at(block_).stamp(position_);
    }

    int64_t cost() const noexcept
    {
        return table_.block_at(block_).cost(position_);
    }

    void next() noexcept
    {
        position_++;
        settle();
    }

    unsigned blocks_read() const noexcept { return blocks_read_; }

    Entry entry() const noexcept { return Entry{block_, position_}; }

  private:
    /* To the next block if this one is through. */
    void settle() noexcept
    {
        while (block_ != kNone) {
            const Block &block = table_.block_at(block_);
            bool is_last = block_ == key_->last_block;

            if (position_ < (is_last ? key_->last_position : block.size())) {
                return;
            }

            block_ = is_last ? kNone : block.next;
            position_ = 0;
            blocks_read_++;
        }
    }

    const MemoryTable &table_;
    const Key *key_;
    CellNumber block_;
    uint8_t position_;
    unsigned blocks_read_ = 0;
};

/* ---- where things are ---- */

MemoryTable::Header &MemoryTable::header() const noexcept
{
    return *reinterpret_cast<Header *>(memory_);
}

size_t MemoryTable::header_cells() noexcept
{
    return (sizeof(Header) + kCellSize - 1) / kCellSize;
}

MemoryTable::CellNumber *MemoryTable::slots() const noexcept
{
    return reinterpret_cast<CellNumber *>(memory_ + header_cells() * kCellSize);
}

MemoryTable::CellNumber &MemoryTable::slot_of(const Name &name) const noexcept
{
    uint32_t number;
    memcpy(&number, name.hash, sizeof(number));

    return slots()[number & header().hash_mask];
}

MemoryTable::Key &MemoryTable::key_at(CellNumber number) const noexcept
{
    static_assert(sizeof(Key) == kCellSize, "a key is a cell");

    return *reinterpret_cast<Key *>(memory_ + size_t{number} * kCellSize);
}

MemoryTable::Block &MemoryTable::block_at(CellNumber number) const noexcept
{
    static_assert(sizeof(Block) == kCellSize, "a block is a cell");

    return *reinterpret_cast<Block *>(memory_ + size_t{number} * kCellSize);
}

void MemoryTable::format(void *memory, size_t size,
                         const uint8_t (&secret)[kSecretSize]) noexcept
{
    uint64_t cells = size / kCellSize;

    constexpr uint64_t kMostCells = uint64_t{1} << kNumberBits;

    if (cells > kMostCells) {
        cells = kMostCells;
    }

    /* a slot for every second cell: most keys have a block of their own */
    uint32_t slots = 64;

    while (uint64_t{slots} * 4 <= cells) {
        slots *= 2;
    }

    memset(memory, 0, size);

    auto *header = new (memory) Header();

    header->hash_mask = slots - 1;
    header->first_cell = static_cast<uint32_t>(
        header_cells() + slots * sizeof(CellNumber) / kCellSize);
    header->cell_count = static_cast<uint32_t>(cells);
    memcpy(header->secret, secret, kSecretSize);

    MemoryTable table(memory);

    for (uint32_t n = header->cell_count; n-- > header->first_cell;) {
        table.give_cell(n);
    }
}

MemoryTable::MemoryTable(void *memory) noexcept
    : memory_(static_cast<uint8_t *>(memory))
{}

/*
 * The table's time, which only ever goes forwards. If the clock steps back, it
 * goes on from where it was: nothing leaves a window early, and nobody waits
 * until the clock is where it has been.
 */
int64_t MemoryTable::time_at(int64_t clock_us) noexcept
{
    Header &h = header();

    if (clock_us + h.ahead_us < h.now_us) {
        h.ahead_us = h.now_us - clock_us;
    }

    h.now_us = clock_us + h.ahead_us;

    return h.now_us;
}

int64_t MemoryTable::stamp_at(Entry entry) const noexcept
{
    return block_at(entry.block).stamp(entry.position);
}

/* ---- questions ---- */

Decided MemoryTable::ask(const LimitQuery *limits, size_t count,
                         int64_t clock_us, LimitState *states,
                         int64_t *time_us) noexcept
{
    Asked asked[kMaxLimits];
    bool admitted = true;

    Change change(*this);

    int64_t now_us = std::max(time_at(clock_us), header().last_stamp_us + 1);

    for (size_t i = 0; i < count; i++) {
        expire_idle(list_of(limits[i].window_us));
    }

    for (size_t i = 0; i < count; i++) {
        asked[i].now_us = now_us;

        if (!read(limits[i], &asked[i])) {
            return Decided::kNotYet;
        }

        admitted = admitted && (asked[i].admits || limits[i].dry_run);
    }

    *time_us = now_us;
    header().last_stamp_us = now_us;
    in_this_order();

    uint32_t needed = 0;

    for (size_t i = 0; i < count; i++) {
        asked[i].is_counted = asked[i].admits ? admitted && limits[i].cost > 0
                                              : limits[i].counts_refused;

        /* a key and a block, if they are not there */
        needed += asked[i].is_counted ? 2 : 0;
    }

    if (!make_room(needed, asked, count)) {
        return Decided::kNoMemory;
    }

    for (size_t i = 0; i < count; i++) {
        const LimitQuery &limit = limits[i];
        Asked &a = asked[i];

        if (a.is_counted) {
            this->count(limit, &a);
        }

        int64_t amount = a.admits ? 1 : a.used + limit.cost - limit.max;
        int64_t when = leaves(limit, a, amount);

        states[i] = LimitState{a.admits, a.admits && a.is_counted, a.used,
                               when != 0 ? when - now_us : kNoWait, a.place};
    }

    return Decided::kYes;
}

MemoryTable::Name MemoryTable::name_of(const LimitQuery &limit,
                                       NameOf what) const noexcept
{
    /* Before the key, all that it must not be mixed up with; the first word
     * says what follows, so that nothing can be taken for something else. */
    constexpr size_t kZoneWords = (kMaxZoneName + 7) / 8;
    uint64_t head[1 + kZoneWords + 4];
    size_t zone_size = std::min(limit.zone.size(), kMaxZoneName);
    size_t words = 1 + (zone_size + 7) / 8;

    head[words - 1] = 0;
    memcpy(head + 1, limit.zone.data(), zone_size);
    head[0] = static_cast<uint64_t>(what) | zone_size << 8;
    head[words++] = limit.buckets ? static_cast<uint64_t>(width_of(limit)) : 0;

    /* counts outlive a change of these, what was said about them does not */
    if (what == NameOf::kRefusal) {
        head[words++] = static_cast<uint64_t>(limit.window_us);
        head[words++] = static_cast<uint64_t>(limit.max);
        head[words++] = static_cast<uint64_t>(limit.cost);
    }

    Name name;

    siphash128(head, words, limit.key, header().secret, name.hash);

    return name;
}

MemoryTable::CellNumber MemoryTable::find(const Name &name) const noexcept
{
    CellNumber number = slot_of(name);

    while (number != kNone
           && memcmp(key_at(number).name.hash, name.hash, sizeof(name.hash))
                  != 0)
    {
        number = key_at(number).hash_next;
    }

    return number;
}

/* False if there is more to drop first than may be at a time. */
bool MemoryTable::read(const LimitQuery &limit, Asked *asked) noexcept
{
    asked->used = 0;
    asked->place = kNoPlace;
    asked->name = name_of(limit, NameOf::kCounted);
    asked->key = find(asked->name);
    asked->refused_key = kNone;

    if (limit.counts_refused && limit.buckets == 0) {
        asked->refused_name = name_of(limit, NameOf::kRefused);
        asked->refused_key = find(asked->refused_name);
    }

    for (CellNumber number : {asked->key, asked->refused_key}) {
        if (number != kNone) {
            touch(number);

            if (!drop_front(key_at(number), last_expired(limit, asked->now_us)))
            {
                return false;
            }

            asked->used += key_at(number).used;
        }
    }

    asked->admits = limit.cost == 0 || asked->used + limit.cost <= limit.max;

    return true;
}

/*
 * When `amount` of what is used will have left; 0 if nothing is. After many
 * blocks that is too early, and whoever comes back then is told the rest.
 */
int64_t MemoryTable::leaves(const LimitQuery &limit, const Asked &asked,
                            int64_t amount) const noexcept
{
    Cursor counted(*this, asked.key);
    Cursor refused(*this, asked.refused_key);
    int64_t left = 0;
    int64_t last = 0;

    while (!counted.at_end() || !refused.at_end()) {
        bool is_refused =
            counted.at_end()
            || (!refused.at_end() && refused.stamp() < counted.stamp());
        Cursor &first = is_refused ? refused : counted;

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

    if (last == 0) {
        return 0;
    }

    return leaves_at(limit, last);
}

void MemoryTable::count(const LimitQuery &limit, Asked *asked) noexcept
{
    bool is_refused = !asked->admits && limit.buckets == 0;
    CellNumber &number = is_refused ? asked->refused_key : asked->key;

    if (number == kNone) {
        number = add_key(is_refused ? asked->refused_name : asked->name,
                         limit.window_us);
    }

    Key &key = key_at(number);
    int64_t stamp = stamp_of(limit, asked->now_us);

    append(key, stamp, limit.cost, limit.buckets != 0);
    asked->used += limit.cost;
    asked->place = last_entry(key).place();
    key.expires_us = leaves_at(limit, stamp);

    if (is_refused) {
        asked->used -= drop_surplus(key, limit.max);
    }
}

/*
 * More than max refused requests make no difference. Returns how much of it is
 * gone; if max has become much smaller, the rest goes with the next ones.
 */
int64_t MemoryTable::drop_surplus(Key &key, int64_t max) noexcept
{
    int64_t used = key.used;

    for (unsigned i = 0; i < kMaxSurplusDropped; i++) {
        const Block &block = block_at(key.first_block);

        if (key.used - block.cost(key.first_position) < max) {
            break;
        }

        drop_front(key, block.stamp(key.first_position));
    }

    return used - key.used;
}

void MemoryTable::take_back(const LimitQuery *limits, size_t count,
                            int64_t time_us) noexcept
{
    Change change(*this);

    for (size_t i = 0; i < count; i++) {
        const LimitQuery &limit = limits[i];
        CellNumber number = find(name_of(limit, NameOf::kCounted));

        if (number == kNone) {
            continue;
        }

        int64_t stamp = stamp_of(limit, time_us);
        Entry entry = limit.buckets ? find_bucket(number, stamp)
                                    : find_entry(number, limit.place, stamp);

        if (entry.block != kNone) {
            take_back(key_at(number), entry, limit.cost);
        }
    }
}

/* ---- refusals by other stores ---- */

/*
 * The wait is counted from when the question was sent, not from when the
 * answer came: the store looked at its clock in between.
 */
void MemoryTable::remember(const LimitQuery &limit, const LimitState &state,
                           int64_t asked_us, int64_t clock_us) noexcept
{
    /* a store whose clock has stepped back names waits that are longer than
     * its window; whether they stay so is not known */
    int64_t wait = std::min(state.wait_us, longest_wait(limit));
    int64_t took = clock_us - asked_us;

    /* nobody knows how long it took if our clock has stepped back meanwhile */
    if (took < 0 || wait <= took) {
        return;
    }

    Change change(*this);

    int64_t since_us = time_at(clock_us) - took;
    int64_t lasts = wait - took;
    uint8_t list = list_of(lasts);

    expire_idle(list);

    Name name = name_of(limit, NameOf::kRefusal);
    CellNumber number = find(name);

    if (number == kNone) {
        number = add_refusal(name, lasts);

        if (number == kNone) {
            return;
        }
    } else {
        move_to(number, list + is_of_regulars(key_at(number).list));
    }

    Key &key = key_at(number);

    block_at(key.first_block).refusal = {state.used, since_us, since_us + wait,
                                         since_us};
    key.expires_us = since_us + wait;
}

/* A key with a block to write it to; kNone: there is no room. */
MemoryTable::CellNumber MemoryTable::add_refusal(const Name &name,
                                                 int64_t lasts) noexcept
{
    if (!make_room(2, nullptr, 0)) {
        return kNone;
    }

    CellNumber number = add_key(name, lasts);
    CellNumber block = take_cell();
    Key &key = key_at(number);

    block_at(block).tag = Tag::kRefusal;
    block_at(block).next = kNone;
    in_this_order();
    key.first_block = block;
    key.last_block = block;
    key.block_count = 1;

    return number;
}

Recalled MemoryTable::recall(const LimitQuery &limit, int64_t clock_us,
                             int64_t max_age_us, LimitState *state) noexcept
{
    Change change(*this);
    int64_t now_us = time_at(clock_us);
    CellNumber number = find(name_of(limit, NameOf::kRefusal));

    if (number == kNone) {
        return Recalled::kNothing;
    }

    Refusal &found = block_at(key_at(number).first_block).refusal;
    int64_t drift = (now_us - found.since_us) / kPartsOfDrift;

    if (now_us + drift >= found.until_us) {
        return Recalled::kNothing;
    }

    touch(number);

    if (now_us - found.checked_us >= max_age_us) {
        found.checked_us = now_us;
        return Recalled::kAskAgain;
    }

    *state = LimitState{false, false, found.used, found.until_us - now_us};

    return Recalled::kRefusal;
}

void MemoryTable::forget(const LimitQuery &limit) noexcept
{
    Change change(*this);
    CellNumber number = find(name_of(limit, NameOf::kRefusal));

    if (number != kNone) {
        remove_key(number);
    }
}

/* ---- entries of a key ---- */

/* Buckets are always weighted, so that more can be added to the last one. */
void MemoryTable::append(Key &key, int64_t stamp, int64_t cost,
                         bool is_bucket) noexcept
{
    Tag tag = is_bucket || cost != 1 ? Tag::kWeighted : Tag::kOnes;
    Block *last = key.last_block != kNone ? &block_at(key.last_block) : nullptr;
    uint8_t end = key.last_position;

    key.used += cost;

    if (is_bucket && last != nullptr && end > 0
        && last->weighted[end - 1].stamp == stamp)
    {
        last->weighted[end - 1].cost += cost;
        return;
    }

    if (last == nullptr || last->tag != tag || end == last->size()) {
        CellNumber number = take_cell();
        Block &added = block_at(number);

        memset(static_cast<void *>(&added), 0, sizeof(added));
        added.tag = tag;
        added.earlier = key.last_block;
        in_this_order();

        if (last != nullptr) {
            last->next = number;
        } else {
            key.first_block = number;
            key.first_position = 0;
        }

        key.last_block = number;
        key.last_position = 0;
        key.block_count++;
        last = &added;
        end = 0;
    }

    if (tag == Tag::kOnes) {
        last->ones[end] = stamp;
    } else {
        last->weighted[end] = {stamp, cost};
    }

    key.last_position = end + 1;
}

MemoryTable::Entry MemoryTable::last_entry(const Key &key) noexcept
{
    return Entry{key.last_block, static_cast<uint8_t>(key.last_position - 1)};
}

/*
 * Drops what stands in front and has expired or was taken back. False if that
 * is more than may be dropped at a time: then the first one may be such, too.
 */
bool MemoryTable::drop_front(Key &key, int64_t last_expired) noexcept
{
    CellNumber number = key.first_block;
    uint8_t position = key.first_position;
    CellNumber last_dropped = kNone;
    uint32_t dropped = 0;
    bool is_done = false;

    /* most often all of it, or nothing */
    if (key.used == 0
        || (key.last_position > 0 && stamp_at(last_entry(key)) <= last_expired))
    {
        give_chain(key);
        return true;
    }

    while (!is_done && dropped < kMaxBlocksDropped) {
        const Block &block = block_at(number);
        bool is_last = number == key.last_block;
        uint8_t end = is_last ? key.last_position : block.size();

        while (position < end
               && (block.stamp(position) <= last_expired
                   || block.cost(position) == 0))
        {
            key.used -= block.cost(position);
            position++;
        }

        is_done = position < end;

        if (!is_done && is_last) {
            give_chain(key);
            return true;
        }

        if (!is_done) {
            last_dropped = number;
            dropped++;
            number = block.next;
            position = 0;
        }
    }

    /* whoever finds one without the other skips nothing that counts */
    key.first_position = position;

    if (dropped > 0) {
        CellNumber first = key.first_block;

        key.block_count -= dropped;
        in_this_order();
        key.first_block = number;
        in_this_order();
        give_cells(first, last_dropped, dropped);
    }

    return is_done;
}

/*
 * Where a request was counted is a hint: its cell may be free again by now, or
 * be used for something else, or for the same client. Nobody else has its
 * stamp, so a cell that shows it has not been used again; and a chain is in the
 * order of its stamps, so the cell is still in it unless the chain begins
 * later.
 */
MemoryTable::Entry MemoryTable::find_entry(CellNumber number, uint64_t place,
                                           int64_t stamp) const noexcept
{
    const Key &key = key_at(number);
    Entry entry = Entry::at(place);

    if (key.first_block == kNone || entry.block < header().first_cell
        || entry.block >= header().cell_count)
    {
        return Entry{kNone, 0};
    }

    const Block &block = block_at(entry.block);
    bool has_entries = block.tag == Tag::kOnes || block.tag == Tag::kWeighted;

    if (!has_entries || entry.position >= block.size()
        || block.stamp(entry.position) != stamp
        || stamp_at({key.first_block, key.first_position}) > stamp)
    {
        return Entry{kNone, 0};
    }

    return entry;
}

/* There are few of them: the oldest went when the newest was counted. */
MemoryTable::Entry MemoryTable::find_bucket(CellNumber number,
                                            int64_t stamp) const noexcept
{
    Cursor cursor(*this, number);

    while (!cursor.at_end() && cursor.stamp() != stamp) {
        cursor.next();
    }

    return cursor.entry();
}

/* Marks it; a block goes when nothing in it counts any more. */
void MemoryTable::take_back(Key &key, Entry entry, int64_t cost) noexcept
{
    Block &block = block_at(entry.block);
    int64_t amount = std::min(cost, block.cost(entry.position));

    key.used -= amount;

    if (block.tag == Tag::kWeighted) {
        block.weighted[entry.position].cost -= amount;
    } else if (amount > 0) {
        block.ones[entry.position] = -block.ones[entry.position];
    }

    if (entry.block == key.first_block || key.used == 0) {
        drop_front(key, 0);
    } else if (block.counts_nothing()) {
        remove_block(key, entry.block);
    }
}

/* Not the first one. */
void MemoryTable::remove_block(Key &key, CellNumber number) noexcept
{
    CellNumber earlier = block_at(number).earlier;
    CellNumber next = block_at(number).next;

    block_at(earlier).next = next;
    in_this_order();

    if (number == key.last_block) {
        key.last_block = earlier;
        key.last_position = block_at(earlier).end();
    } else {
        block_at(next).earlier = earlier;
    }

    key.block_count--;
    give_cell(number);
}

/* ---- keys ---- */

MemoryTable::CellNumber MemoryTable::add_key(const Name &name,
                                             int64_t window_us) noexcept
{
    CellNumber number = take_cell();
    Key &key = key_at(number);

    memset(static_cast<void *>(&key), 0, sizeof(key));
    key.name = name;
    key.list = list_of(window_us);
    in_this_order();
    key.tag = Tag::kKey;

    CellNumber &slot = slot_of(name);

    key.hash_next = slot;
    slot = number;
    header().keys++;
    link_newest(number);

    return number;
}

void MemoryTable::remove_key(CellNumber number) noexcept
{
    Key &key = key_at(number);
    CellNumber *link = &slot_of(key.name);

    while (*link != number) {
        link = &key_at(*link).hash_next;
    }

    *link = key.hash_next;
    unlink(number);
    give_chain(key);
    give_cell(number);
    header().keys--;
}

/* It is asked about again: so it is a regular. */
void MemoryTable::touch(CellNumber number) noexcept
{
    Key &key = key_at(number);

    if (is_of_regulars(key.list)) {
        unlink(number);
        link_newest(number);
        return;
    }

    move_to(number, key.list + 1);

    /* there must be room for new ones, too */
    if (header().regulars * 4 > header().keys * kRegulars) {
        CellNumber oldest = header().oldest[key.list];

        if (oldest != number) {
            move_to(oldest, key.list - 1);
        }
    }
}

void MemoryTable::move_to(CellNumber number, unsigned list) noexcept
{
    unlink(number);
    key_at(number).list = static_cast<uint8_t>(list);
    link_newest(number);
}

void MemoryTable::link_newest(CellNumber number) noexcept
{
    Key &key = key_at(number);
    CellNumber &newest = header().newest[key.list];

    key.touched_s = static_cast<uint32_t>(header().now_us / 1000000);
    key.newer = kNone;
    key.older = newest;

    if (newest != kNone) {
        key_at(newest).newer = number;
    } else {
        header().oldest[key.list] = number;
    }

    newest = number;
    header().regulars += is_of_regulars(key.list);
}

void MemoryTable::unlink(CellNumber number) noexcept
{
    const Key &key = key_at(number);

    header().regulars -= is_of_regulars(key.list);

    if (key.newer != kNone) {
        key_at(key.newer).older = key.older;
    } else {
        header().newest[key.list] = key.older;
    }

    if (key.older != kNone) {
        key_at(key.older).newer = key.newer;
    } else {
        header().oldest[key.list] = key.newer;
    }
}

/* ---- cells ---- */

MemoryTable::CellNumber MemoryTable::take_cell() noexcept
{
    CellNumber number = header().free_head;

    header().free_head = block_at(number).next;
    header().free_count--;

    return number;
}

void MemoryTable::give_cell(CellNumber number) noexcept
{
    block_at(number).tag = Tag::kFree;
    give_cells(number, number, 1);
}

/* So many that are linked already. */
void MemoryTable::give_cells(CellNumber first, CellNumber last,
                             uint32_t count) noexcept
{
    block_at(last).next = header().free_head;
    header().free_head = first;
    header().free_count += count;
}

/* All blocks at once, however many. */
void MemoryTable::give_chain(Key &key) noexcept
{
    CellNumber first = key.first_block;
    CellNumber last = key.last_block;
    uint32_t count = key.block_count;

    key.first_block = kNone;
    key.last_block = kNone;
    key.first_position = 0;
    key.last_position = 0;
    key.block_count = 0;
    key.used = 0;

    if (first == kNone) {
        return;
    }

    /* from now on nobody could find them through the key */
    in_this_order();
    give_cells(first, last, count);
}

/* In the list, and in that of the regulars next to it. */
void MemoryTable::expire_idle(unsigned list) noexcept
{
    for (unsigned i = 0; i < kIdlePerLimit; i++) {
        CellNumber number = header().oldest[list + i % 2];

        if (number != kNone && is_expired(number)) {
            remove_key(number);
        }
    }
}

/*
 * Sees to it that so many cells are free: keys that do not matter any more go
 * first, then those that came only once, then regulars; of each kind the one
 * that nobody has asked about for longest. Not those that are being asked
 * about; if only they are left, there is no room.
 */
bool MemoryTable::make_room(uint32_t cells, const Asked *asked,
                            size_t count) noexcept
{
    while (header().free_count < cells) {
        CellNumber victim = kNone;

        for (unsigned list = 0; list < kLists; list++) {
            CellNumber n = header().oldest[list];

            while (n != kNone && is_asked(n, asked, count)) {
                n = key_at(n).newer;
            }

            if (n != kNone && (victim == kNone || goes_before(n, victim))) {
                victim = n;
            }
        }

        if (victim == kNone) {
            return false;
        }

        if (!is_expired(victim)) {
            header().evictions++;
        }

        remove_key(victim);
    }

    return true;
}

bool MemoryTable::is_expired(CellNumber number) const noexcept
{
    return key_at(number).expires_us <= header().now_us;
}

/* Of the longest idle keys of two lists. */
bool MemoryTable::goes_before(CellNumber a, CellNumber b) const noexcept
{
    if (is_expired(a) != is_expired(b)) {
        return is_expired(a);
    }

    bool a_is_regular = is_of_regulars(key_at(a).list);

    if (a_is_regular != is_of_regulars(key_at(b).list)) {
        return !a_is_regular;
    }

    return key_at(a).touched_s < key_at(b).touched_s;
}

/* ---- after a process was killed ---- */

void MemoryTable::recover() noexcept
{
    Header &h = header();

    h.recoveries++;
    h.keys = 0;
    h.regulars = 0;
    h.free_head = kNone;
    h.free_count = 0;
    memset(h.newest, 0, sizeof(h.newest));
    memset(h.oldest, 0, sizeof(h.oldest));
    memset(slots(), 0, (size_t{h.hash_mask} + 1) * sizeof(CellNumber));

    /* of one who was killed while doing this */
    unmark_reached();

    for (CellNumber n = h.first_cell; n < h.cell_count; n++) {
        if (key_at(n).tag == Tag::kKey) {
            recover_key(n);
        }
    }

    for (CellNumber n = h.first_cell; n < h.cell_count; n++) {
        Tag tag = block_at(n).tag;

        if (tag != Tag::kKey && tag != Tag::kReachedOnes
            && tag != Tag::kReachedWeighted)
        {
            give_cell(n);
        }
    }

    unmark_reached();
}

void MemoryTable::unmark_reached() noexcept
{
    for (CellNumber n = header().first_cell; n < header().cell_count; n++) {
        Block &block = block_at(n);

        if (block.tag == Tag::kReachedOnes) {
            block.tag = Tag::kOnes;
        } else if (block.tag == Tag::kReachedWeighted) {
            block.tag = Tag::kWeighted;
        }
    }
}

/*
 * Finds the blocks of a key again, as far as they are whole. What is in the
 * last one shows in the stamps: those that were not written yet are 0.
 */
void MemoryTable::recover_key(CellNumber number) noexcept
{
    const Header &h = header();
    Key &key = key_at(number);
    CellNumber next = key.first_block;
    uint8_t position = key.first_position;

    key.last_block = kNone;
    key.last_position = 0;
    key.block_count = 0;
    key.used = 0;

    while (next >= h.first_cell && next < h.cell_count) {
        Block &block = block_at(next);

        if (block.tag != Tag::kOnes && block.tag != Tag::kWeighted) {
            break;
        }

        uint8_t end = block.end();

        /* whatever it was: to count what has expired does no harm */
        if (position >= block.size()) {
            position = 0;
            key.first_position = 0;
        }

        for (; position < end; position++) {
            key.used += block.cost(position);
        }

        if (key.last_block != kNone) {
            block_at(key.last_block).next = next;
        }

        block.tag =
            block.tag == Tag::kOnes ? Tag::kReachedOnes : Tag::kReachedWeighted;
        block.earlier = key.last_block;
        key.last_block = next;
        key.last_position = end;
        key.block_count++;
        position = 0;
        next = block.next;
    }

    if (key.last_block != kNone) {
        block_at(key.last_block).next = kNone;
    }

    /* a key without blocks has nothing to remember; it may be half made */
    if (key.used <= 0 || key.list >= kLists) {
        for (CellNumber n = key.first_block; key.block_count > 0;
             key.block_count--) {
            CellNumber after = block_at(n).next;
            block_at(n).tag = Tag::kFree;
            n = after;
        }

        key.tag = Tag::kFree;
        return;
    }

    uint32_t touched_s = key.touched_s;
    CellNumber &slot = slot_of(key.name);

    key.hash_next = slot;
    slot = number;
    header().keys++;
    link_newest(number);
    key.touched_s = touched_s;
}

void MemoryTable::leave_half_done() noexcept
{
    header().in_change.store(1);
}

TableStats MemoryTable::stats() const noexcept
{
    const Header &h = header();

    return TableStats{h.cell_count - h.first_cell, h.free_count, h.keys,
                      h.evictions, h.recoveries};
}

}  // namespace sl
