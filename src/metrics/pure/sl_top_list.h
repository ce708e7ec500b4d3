/*
 * Who was there most: the Space-Saving algorithm, which finds them among any
 * number of clients in memory of a fixed size.
 *
 * If a client is new and there is no place, it takes that of the one with the
 * least, together with its number: so many of its own may have been missed
 * before. Whoever has more than one in kPlaces of all is sure to be in the
 * list. Those who have not been seen for long make way first.
 *
 * The list lies in memory that several processes share. Whoever calls holds a
 * lock; if a process is killed with it, what that was about to write may be
 * lost or half there. That does no harm, and neither would any other bytes: a
 * client that was never there may be shown, and that is all.
 */

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sl {

struct TopClient {
    /* The hash of its key; 0 if the place is free. */
    uint64_t hash;

    /* How often it was seen since first_ms. */
    uint64_t count;

    /* How often it may have been seen before that, at most. */
    uint64_t missed_at_most;

    int64_t first_ms;
    int64_t last_ms;

    /* In a list of those who are refused: the last window in which it was, how
     * many windows in a row that has gone on, and after how many of them the
     * log is to be told next. */
    int64_t window;
    uint32_t windows_in_a_row;
    uint32_t tell_at;

    /* The key, or its beginning. */
    static constexpr size_t kMaxKey = 59;
    uint8_t key_size;
    uint8_t is_cut; /* not 0: only its beginning; not every byte is a bool */
    char key[kMaxKey + 3];

    std::string_view text() const noexcept
    {
        /* never trust what a killed process may have left */
        return {key, key_size < sizeof(key) ? key_size : sizeof(key)};
    }
};

class TopList {
  public:
    static constexpr size_t kPlaces = 64;

    /* Counts a client. Those who were not seen for `idle_ms` are forgotten
     * rather than others. */
    TopClient &count(uint64_t hash, std::string_view key, int64_t now_ms,
                     int64_t idle_ms) noexcept;

    /* Copies those who were seen in the last `idle_ms`, the ones with most
     * first, but not more than `room`; returns how many. */
    size_t read(int64_t now_ms, int64_t idle_ms, TopClient *to,
                size_t room) const noexcept;

  private:
    TopClient *find(uint64_t hash) noexcept;
    size_t place_for_new(int64_t now_ms, int64_t idle_ms,
                         uint64_t *missed) noexcept;

    /* A byte of each client's hash, eight to a word: all are in one cache line,
     * and eight of them are looked at at a time. */
    static constexpr size_t kMarksPerWord = 8;
    uint64_t marks_[kPlaces / kMarksPerWord];
    TopClient clients_[kPlaces];

    /* Not 0: somebody had to go who was not idle. */
    uint8_t has_missed_;
};

/*
 * A client is over its limit in this window, too. True if that has gone on for
 * so long that the log should be told; see told().
 */
bool persists(TopClient *client, int64_t window) noexcept;

/* The log has been told of this client; it will be again if that goes on for as
 * long once more. */
void told(TopClient *client) noexcept;

/* Writes what tells a key from others that begin alike; it always has this
 * size. */
constexpr size_t kKeyMark = 12;
void mark_key(const TopClient &client, char *to) noexcept;

/* Writes a key as others may see it: its beginning, and enough to tell it from
 * others. Returns the size. */
constexpr size_t kMaxMaskedKey = 24;
size_t mask_key(const TopClient &client, char (&to)[kMaxMaskedKey]) noexcept;

/* The same for a client with this key, whether it is in a list or not. */
size_t mask_key(uint64_t hash, std::string_view key,
                char (&to)[kMaxMaskedKey]) noexcept;

}  // namespace sl
