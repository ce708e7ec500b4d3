#include "metrics/pure/sl_top_list.h"

#include <algorithm>

#include "base/pure/sl_words.h"

namespace sl {

namespace {

/* So many windows in a row are a habit. */
constexpr uint32_t kHabit = 3;

constexpr uint64_t kEveryByte = 0x0101010101010101;

uint64_t mark_of(uint64_t hash)
{
    return hash & 0xff;
}

/* Returns the highest bit of every byte that is zero, and perhaps of some bytes
 * above such a byte. */
uint64_t zero_bytes(uint64_t word)
{
    return (word - kEveryByte) & ~word & kEveryByte << 7;
}

bool is_idle(const TopClient &client, int64_t now_ms, int64_t idle_ms)
{
    return client.hash == 0 || client.last_ms < now_ms - idle_ms;
}

/* A client that has not been seen yet. */
TopClient named(uint64_t hash, std::string_view key)
{
    TopClient client{};

    client.hash = hash != 0 ? hash : 1;
    client.is_cut = key.size() > TopClient::kMaxKey;
    client.key_size =
        static_cast<uint8_t>(std::min(key.size(), TopClient::kMaxKey));
    key.copy(client.key, client.key_size);

    return client;
}

uint64_t weight(const TopClient &client)
{
    return client.count + client.missed_at_most;
}

}  // namespace

TopClient &TopList::count(uint64_t hash, std::string_view key, int64_t now_ms,
                          int64_t idle_ms) noexcept
{
    hash = hash != 0 ? hash : 1;

    TopClient *known = find(hash);

    if (known != nullptr && !is_idle(*known, now_ms, idle_ms)) {
        known->count++;
        known->last_ms = now_ms;
        return *known;
    }

    /* the client starts anew, and must not be there twice */
    if (known != nullptr) {
        known->hash = 0;
    }

    uint64_t missed;
    size_t place = place_for_new(now_ms, idle_ms, &missed);
    TopClient &added = clients_[place];

    added = named(hash, key);
    added.count = 1;
    added.missed_at_most = missed;
    added.first_ms = now_ms;
    added.last_ms = now_ms;
    added.tell_at = kHabit;

    uint64_t &marks = marks_[place / kMarksPerWord];
    size_t shift = place % kMarksPerWord * 8;

    marks = (marks & ~(uint64_t{0xff} << shift)) | mark_of(hash) << shift;

    return added;
}

TopClient *TopList::find(uint64_t hash) noexcept
{
    uint64_t wanted = mark_of(hash) * kEveryByte;

    for (size_t word = 0; word < kPlaces / kMarksPerWord; word++) {
        uint64_t matches = zero_bytes(marks_[word] ^ wanted);

        for (; matches != 0; matches &= matches - 1) {
            auto bit = static_cast<size_t>(__builtin_ctzll(matches));
            TopClient &client = clients_[word * kMarksPerWord + bit / 8];

            if (client.hash == hash) {
                return &client;
            }
        }
    }

    return nullptr;
}

size_t TopList::place_for_new(int64_t now_ms, int64_t idle_ms,
                              uint64_t *missed) noexcept
{
    size_t idle = kPlaces;
    size_t least = kPlaces;

    for (size_t i = 0; i < kPlaces; i++) {
        if (is_idle(clients_[i], now_ms, idle_ms)) {
            idle = i;
        } else if (least == kPlaces
                   || weight(clients_[i]) < weight(clients_[least])) {
            least = i;
        }
    }

    if (least == kPlaces) {
        has_missed_ = 0;
    }

    if (idle == kPlaces) {
        has_missed_ = 1;
    }

    /* whoever had to go had less than everybody who is here now */
    *missed = has_missed_ != 0 ? weight(clients_[least]) : 0;

    return idle != kPlaces ? idle : least;
}

size_t TopList::read(int64_t now_ms, int64_t idle_ms, TopClient *to,
                     size_t room) const noexcept
{
    TopClient found[kPlaces];
    size_t count = 0;

    for (const TopClient &client : clients_) {
        if (!is_idle(client, now_ms, idle_ms)) {
            found[count++] = client;
        }
    }

    std::sort(found, found + count, [](const TopClient &a, const TopClient &b) {
        return a.count != b.count ? a.count > b.count : a.last_ms > b.last_ms;
    });

    count = std::min(count, room);
    std::copy(found, found + count, to);

    return count;
}

bool persists(TopClient *client, int64_t window) noexcept
{
    if (client->windows_in_a_row == 0 || window - 1 > client->window
        || window < client->window)
    {
        client->windows_in_a_row = 1;
        client->tell_at = kHabit;

    } else if (window - 1 == client->window) {
        client->windows_in_a_row++;
    }

    client->window = window;

    return client->windows_in_a_row >= client->tell_at;
}

void told(TopClient *client) noexcept
{
    client->tell_at = 2 * client->windows_in_a_row;
}

void mark_key(const TopClient &client, char *to) noexcept
{
    to = append(to, "...#");

    for (int shift = 56; shift >= 32; shift -= 8) {
        to = append_hex(to, static_cast<uint8_t>(client.hash >> shift));
    }
}

size_t mask_key(const TopClient &client, char (&to)[kMaxMaskedKey]) noexcept
{
    constexpr size_t kShown = 4;

    std::string_view key = client.text();
    size_t shown = std::min(kShown, key.size() / 4);

    /* a character is not cut in half */
    while (shown > 0 && (static_cast<uint8_t>(key[shown]) & 0xc0) == 0x80) {
        shown--;
    }

    mark_key(client, append(to, key.substr(0, shown)));

    return shown + kKeyMark;
}

size_t mask_key(uint64_t hash, std::string_view key,
                char (&to)[kMaxMaskedKey]) noexcept
{
    return mask_key(named(hash, key), to);
}

}  // namespace sl
