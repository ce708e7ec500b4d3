#include "store/pure/sl_memory_rulings.h"

#include <algorithm>

#include "base/pure/sl_readable_key.h"
#include "store/pure/sl_memory_keys.h"

namespace sl {

namespace {

/* How many entries a list goes through at a time. */
constexpr uint32_t kMostListed = 4096;

/* No slot of the index ever has so many: there are as many as entries, and who
 * comes into which is a matter of chance. */
constexpr unsigned kMostInSlot = 64;

/* The table's time may be ahead of its clock by this. */
constexpr int64_t kMostAhead = int64_t{60} * 60 * 1000000;

bool is_in_force(const Ruling &ruling, int64_t now_us)
{
    return ruling.bans(now_us) || ruling.overrides(now_us);
}

bool can_be_ruling(const Ruling &ruling, int64_t now_us)
{
    int64_t latest = now_us + kMostAhead + kLongestRuling;

    return ruling.ban_until_us >= 0 && ruling.ban_until_us <= latest
           && ruling.max >= 0 && ruling.max_until_us >= 0
           && ruling.max_until_us <= latest;
}

bool can_be_entry(const RulingEntry &entry, int64_t now_us)
{
    return entry.zone_size >= 1 && entry.zone_size <= kMaxZoneName
           && entry.key_size >= 1 && entry.key_size <= kMaxReadableKey
           && can_be_ruling(entry.ruling, now_us);
}

}  // namespace

KeyName Rulings::name_of(const LimitQuery &client) const noexcept
{
    LimitQuery log = client;

    log.buckets = 0;

    return Keys(cells_).name_of(log, KeyOf::kCounted);
}

bool Rulings::set(const LimitQuery &client, const Ruling &ruling,
                  int64_t now_us) const noexcept
{
    RulingsHeader &header = cells_.header().rulings;
    bool is_lifted = !is_in_force(ruling, now_us);

    if (!are_any(now_us)) {
        clear();
    }

    KeyName name = name_of(client);
    uint32_t number = number_of(name);

    if (number == kNone && is_lifted) {
        return true;
    }

    if (number == kNone) {
        number = add(client, name, now_us);
    }

    if (number == kNone) {
        return false;
    }

    bool was_last = cells_.ruling(number).ruling.ends_us() == header.until_us;

    change(number, ruling);

    /* only if it was the last to end, nobody knows which one is now */
    header.until_us =
        was_last ? last_end() : std::max(header.until_us, ruling.ends_us());

    return true;
}

/* An entry that rules nothing yet; kNone if there is no room. */
uint32_t Rulings::add(const LimitQuery &client, const KeyName &name,
                      int64_t now_us) const noexcept
{
    uint32_t number = take_place(now_us);

    if (number == kNone) {
        return kNone;
    }

    RulingEntry &entry = cells_.ruling(number);

    /* from now on nobody believes what it says */
    entry.ruling = Ruling{};
    in_this_order();

    entry.name = name;
    entry.zone_size =
        static_cast<uint8_t>(client.zone.copy(entry.zone, sizeof(entry.zone)));
    entry.key_size = static_cast<uint8_t>(readable_key(client.key, entry.key));
    link(number);
    in_this_order();

    return number;
}

/* The next one at the end, or if there is none, one that has ended. */
uint32_t Rulings::take_place(int64_t now_us) const noexcept
{
    RulingsHeader &header = cells_.header().rulings;

    if (header.last < header.capacity) {
        return ++header.last;
    }

    for (uint32_t number = 1; number <= header.last; number++) {
        if (!is_in_force(cells_.ruling(number).ruling, now_us)) {
            unlink(number);
            return number;
        }
    }

    return kNone;
}

/* All of it or nothing, whenever this process is killed. */
void Rulings::change(uint32_t number, const Ruling &ruling) const noexcept
{
    RulingsHeader &header = cells_.header().rulings;

    header.change_to = ruling;
    in_this_order();
    header.changing = number;
    in_this_order();
    finish_change();
}

void Rulings::finish_change() const noexcept
{
    RulingsHeader &header = cells_.header().rulings;

    cells_.ruling(header.changing).ruling = header.change_to;
    in_this_order();
    header.changing = kNone;
    in_this_order();
}

/* All have ended. */
void Rulings::clear() const noexcept
{
    RulingsHeader &header = cells_.header().rulings;

    if (header.last == 0) {
        return;
    }

    header.last = 0;
    header.until_us = 0;
    cells_.clear_ruling_slots();
}

void Rulings::link(uint32_t number) const noexcept
{
    RulingEntry &entry = cells_.ruling(number);
    uint32_t &slot = cells_.ruling_slot_of(entry.name);

    entry.next = slot;
    slot = number;
}

/* After a recovery those that had ended are not in the index. */
void Rulings::unlink(uint32_t number) const noexcept
{
    const RulingEntry &entry = cells_.ruling(number);
    uint32_t *link = &cells_.ruling_slot_of(entry.name);

    while (*link != kNone && *link != number) {
        link = &cells_.ruling(*link).next;
    }

    if (*link == number) {
        *link = entry.next;
    }
}

int64_t Rulings::last_end() const noexcept
{
    int64_t last_us = 0;

    for (uint32_t n = 1; n <= cells_.header().rulings.last; n++) {
        last_us = std::max(last_us, cells_.ruling(n).ruling.ends_us());
    }

    return last_us;
}

void Rulings::list(std::string_view zone, uint32_t from, int64_t now_us,
                   RulingsPage *page) const noexcept
{
    uint32_t last = are_any(now_us) ? cells_.header().rulings.last : 0;
    uint32_t number = std::max<uint32_t>(from, 1);
    uint32_t read = 0;

    page->count = 0;

    for (; number <= last && page->count < RulingsPage::kMost
           && read < kMostListed;
         number++, read++)
    {
        const RulingEntry &entry = cells_.ruling(number);
        const Ruling &ruling = entry.ruling;

        if (!is_in_force(ruling, now_us)
            || zone != std::string_view(entry.zone, entry.zone_size))
        {
            continue;
        }

        char *key = page->keys[page->count];
        bool overrides = ruling.overrides(now_us);

        memcpy(key, entry.key, entry.key_size);
        page->clients[page->count++] =
            RuledClient{{key, entry.key_size},
                        ruling.bans(now_us) ? ruling.ban_until_us - now_us : 0,
                        overrides ? ruling.max : kOwnMax,
                        overrides ? ruling.max_until_us - now_us : 0};
    }

    page->next = number <= last ? number : 0;
}

void Rulings::recover() const noexcept
{
    RulingsHeader &header = cells_.header().rulings;
    int64_t now_us =
        std::max(cells_.header().clock.now_us, cells_.header().last_stamp_us);

    header.last = 0;
    cells_.clear_ruling_slots();

    if (header.changing >= 1 && header.changing <= header.capacity) {
        finish_change();
    }

    header.changing = kNone;

    for (uint32_t number = 1; number <= header.capacity; number++) {
        RulingEntry &entry = cells_.ruling(number);

        if (!can_be_entry(entry, now_us) || !is_in_force(entry.ruling, now_us)
            || !can_be_linked(entry.name))
        {
            entry.ruling = Ruling{};
            in_this_order();
            entry = RulingEntry{};
            continue;
        }

        link(number);
        header.last = number;
    }

    header.until_us = last_end();
}

/* Whether there is room in its slot, and no other entry of its name. */
bool Rulings::can_be_linked(const KeyName &name) const noexcept
{
    uint32_t number = cells_.ruling_slot_of(name);
    unsigned others = 0;

    while (number != kNone && others < kMostInSlot) {
        const RulingEntry &other = cells_.ruling(number);

        if (memcmp(other.name.hash, name.hash, sizeof(name.hash)) == 0) {
            return false;
        }

        number = other.next;
        others++;
    }

    return others < kMostInSlot;
}

}  // namespace sl
