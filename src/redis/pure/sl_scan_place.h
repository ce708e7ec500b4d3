/*
 * Where in a store the search for clients has come to: which server, and where
 * on that. A server is named by its lowest slot; where there is only one, that
 * is 0. What SCAN says of its own place is told back to it as it is.
 *
 * Operators are given it as a text, "SLOT.CURSOR", and may send back anything.
 */

#pragma once

#include <cstddef>
#include <string_view>

namespace sl {

struct ScanPlace {
    /* Digits of the largest number of 64 bits. */
    static constexpr size_t kMaxCursor = 20;

    /* "16383." and that. */
    static constexpr size_t kMaxText = 6 + kMaxCursor;

    unsigned slot = 0;
    char cursor_text[kMaxCursor] = {'0'};
    size_t cursor_size = 1;

    std::string_view cursor() const noexcept
    {
        return {cursor_text, cursor_size};
    }

    /* At the beginning, or again there: the server has no more. */
    bool is_at_start() const noexcept { return cursor() == "0"; }

    /* False: SCAN says no such thing. */
    bool set_cursor(std::string_view text) noexcept;

    /* False if it is no such text. An empty one is the very beginning. */
    bool parse(std::string_view text) noexcept;

    /* To `to`, which has room for kMaxText; returns how long it is. */
    size_t write(char *to) const noexcept;
};

}  // namespace sl
