#include "sl_memory_table.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <new>

#include "sl_key.h"
#include "sl_siphash.h"

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

/* Idle keys that are removed at most for each limit that is asked about. */
constexpr unsigned kIdlePerLimit = 2;

/* A clock that is being set right may run faster than ours by this part. */
constexpr int64_t kPartsOfDrift = 1000;

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

    /* Of the last request: no two have the same. */
    int64_t last_time_us;

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

    Tag tag;
    CellNumber next; /* also of free cells */

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

    /* As if it had never been written. */
    void clear(uint8_t i) noexcept
    {
        if (tag == Tag::kOnes) {
            ones[i] = 0;
        } else {
            weighted[i] = {0, 0};
        }
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

    if (cells > UINT32_MAX) {
        cells = UINT32_MAX;
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

/* The table's time: only ever forwards. */
void MemoryTable::advance(int64_t now_us) noexcept
{
    if (now_us > header().last_time_us) {
        header().last_time_us = now_us;
    }
}

/* ---- questions ---- */

bool MemoryTable::ask(const LimitQuery *limits, size_t count, int64_t now_us,
                      LimitState *states, int64_t *time_us) noexcept
{
    Asked asked[kMaxLimits];
    bool admitted = true;

    Change change(*this);

    if (now_us <= header().last_time_us) {
        now_us = header().last_time_us + 1;
    }

    advance(now_us);
    *time_us = now_us;

    for (size_t i = 0; i < count; i++) {
        expire_idle(list_of(limits[i].window_us));
    }

    for (size_t i = 0; i < count; i++) {
        asked[i].now_us = now_us;
        read(limits[i], &asked[i]);
        admitted = admitted && (asked[i].admits || limits[i].dry_run);
    }

    uint32_t needed = 0;

    for (size_t i = 0; i < count; i++) {
        asked[i].is_counted = asked[i].admits ? admitted && limits[i].cost > 0
                                              : limits[i].counts_refused;

        /* a key and a block, if they are not there */
        needed += asked[i].is_counted ? 2 : 0;
    }

    if (!make_room(needed, asked, count)) {
        return false;
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
                               when != 0 ? when - now_us : kNoWait};
    }

    return true;
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

void MemoryTable::read(const LimitQuery &limit, Asked *asked) noexcept
{
    asked->used = 0;
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
            drop_expired(key_at(number), last_expired(limit, asked->now_us));
            asked->used += key_at(number).used;
        }
    }

    asked->admits = limit.cost == 0 || asked->used + limit.cost <= limit.max;
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
    key.expires_us = leaves_at(limit, stamp);

    /* more than max of them make no difference */
    while (is_refused) {
        int64_t first = Cursor(*this, number).cost();

        if (key.used - first < limit.max) {
            break;
        }

        asked->used -= first;
        drop_first(key);
    }
}

void MemoryTable::take_back(const LimitQuery *limits, size_t count,
                            int64_t time_us) noexcept
{
    Change change(*this);

    for (size_t i = 0; i < count; i++) {
        CellNumber number = find(name_of(limits[i], NameOf::kCounted));

        if (number != kNone) {
            take_back(key_at(number), stamp_of(limits[i], time_us),
                      limits[i].cost);
        }
    }
}

/* ---- refusals by other stores ---- */

/*
 * The wait is counted from when the question was sent, not from when the
 * answer came: the store looked at its clock in between.
 */
void MemoryTable::remember(const LimitQuery &limit, const LimitState &state,
                           int64_t asked_us, int64_t now_us) noexcept
{
    /* a store whose clock has stepped back names waits that are longer than
     * its window; whether they stay so is not known */
    int64_t wait = std::min(state.wait_us, longest_wait(limit));
    int64_t until_us = asked_us + wait;

    if (until_us <= now_us) {
        return;
    }

    Change change(*this);

    advance(now_us);

    int64_t lasts = until_us - now_us;
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

    block_at(key.first_block).refusal = {state.used, asked_us, until_us,
                                         asked_us};
    key.expires_us = until_us;
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

Recalled MemoryTable::recall(const LimitQuery &limit, int64_t now_us,
                             int64_t max_age_us, LimitState *state) noexcept
{
    Change change(*this);
    CellNumber number = find(name_of(limit, NameOf::kRefusal));

    if (number == kNone) {
        return Recalled::kNothing;
    }

    Refusal &found = block_at(key_at(number).first_block).refusal;
    int64_t drift = (now_us - found.since_us) / kPartsOfDrift;

    if (now_us + drift >= found.until_us) {
        return Recalled::kNothing;
    }

    advance(now_us);
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

void MemoryTable::drop_expired(Key &key, int64_t last_expired) noexcept
{
    /* most often all of it, or nothing */
    if (key.last_block != kNone && key.last_position > 0
        && block_at(key.last_block).stamp(key.last_position - 1)
               <= last_expired)
    {
        give_chain(key);
        return;
    }

    while (key.first_block != kNone
           && block_at(key.first_block).stamp(key.first_position)
                  <= last_expired)
    {
        drop_first(key);
    }
}

/* The first entry, and those behind it that were taken back. */
void MemoryTable::drop_first(Key &key) noexcept
{
    do {
        CellNumber number = key.first_block;
        const Block &block = block_at(number);
        bool is_last = number == key.last_block;

        uint8_t next = key.first_position + 1;

        key.used -= block.cost(key.first_position);

        if (next < (is_last ? key.last_position : block.size())) {
            key.first_position = next;
            continue;
        }

        if (is_last) {
            give_chain(key);
            return;
        }

        key.first_position = 0;
        key.block_count--;
        in_this_order();
        key.first_block = block.next;
        in_this_order();
        give_cell(number);

    } while (block_at(key.first_block).cost(key.first_position) == 0);
}

/*
 * Removes it where it is last, and marks it where it stands between others:
 * then it goes when its turn comes.
 */
void MemoryTable::take_back(Key &key, int64_t stamp, int64_t cost) noexcept
{
    /* it is nearly always one of the newest */
    if (key.last_block == kNone
        || take_back_in(key, key.last_block, stamp, cost)) {
        return;
    }

    for (CellNumber n = key.first_block; n != key.last_block;
         n = block_at(n).next) {
        if (take_back_in(key, n, stamp, cost)) {
            return;
        }
    }
}

bool MemoryTable::take_back_in(Key &key, CellNumber number, int64_t stamp,
                               int64_t cost) noexcept
{
    Block &block = block_at(number);
    uint8_t begin = number == key.first_block ? key.first_position : 0;
    uint8_t end = number == key.last_block ? key.last_position : block.size();

    for (uint8_t i = begin; i < end; i++) {
        int64_t counted = block.cost(i);

        if (block.stamp(i) != stamp || counted == 0) {
            continue;
        }

        int64_t amount = cost < counted ? cost : counted;

        key.used -= amount;

        if (block.tag == Tag::kOnes) {
            block.ones[i] = -stamp;
        } else {
            block.weighted[i].cost -= amount;
        }

        trim(key);
        return true;
    }

    return false;
}

/* Entries at both ends that count nothing any more. */
void MemoryTable::trim(Key &key) noexcept
{
    if (key.used == 0) {
        give_chain(key);
        return;
    }

    if (block_at(key.first_block).cost(key.first_position) == 0) {
        drop_first(key);
    }

    Block &last = block_at(key.last_block);
    uint8_t begin = key.first_block == key.last_block ? key.first_position : 0;

    /* the first of a block stays: who comes before it is not known */
    while (key.last_position > begin + 1
           && last.cost(key.last_position - 1) == 0) {
        key.last_position--;
        last.clear(key.last_position);
    }
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

    key.touched_s = static_cast<uint32_t>(header().last_time_us / 1000000);
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
    Block &cell = block_at(number);

    cell.tag = Tag::kFree;
    cell.next = header().free_head;
    header().free_head = number;
    header().free_count++;
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
    block_at(last).next = header().free_head;
    header().free_head = first;
    header().free_count += count;
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
    return key_at(number).expires_us <= header().last_time_us;
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
        Tag &tag = block_at(n).tag;

        if (tag == Tag::kReachedOnes) {
            tag = Tag::kOnes;
        } else if (tag == Tag::kReachedWeighted) {
            tag = Tag::kWeighted;
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

        uint8_t end = 0;

        while (end < block.size() && block.stamp(end) != 0) {
            end++;
        }

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
