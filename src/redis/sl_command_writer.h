/*
 * Writes a command as Redis wants it: how many words, and each with its size
 * before it. hiredis can do that, too, but takes a printf for every word.
 */

#pragma once

#include <cstring>
#include <string_view>

#include "base/pure/sl_number.h"

namespace sl {

class CommandWriter {
  public:
    /* What stands around a word: '$', digits and two line ends. */
    static constexpr size_t kAroundWord = 1 + kMaxDigits + 2 * 2;

    /* `to` has room for all that will be written. */
    CommandWriter(char *to, size_t words) noexcept : begin_(to), end_(to)
    {
        add_size('*', words);
    }

    void add(std::string_view word) noexcept
    {
        add_size('$', word.size());
        add_raw(word);
        add_raw(kLineEnd);
    }

    void add(int64_t number) noexcept
    {
        char digits[kMaxDigits];

        add({digits,
             static_cast<size_t>(write_number(digits, number) - digits)});
    }

    /* For words that have been written before. */
    void add_raw(std::string_view words) noexcept
    {
        memcpy(end_, words.data(), words.size());
        end_ += words.size();
    }

    size_t size() const noexcept { return static_cast<size_t>(end_ - begin_); }

  private:
    static constexpr std::string_view kLineEnd = "\r\n";

    /* Most words are short. */
    void add_size(char mark, size_t size) noexcept
    {
        *end_++ = mark;

        if (size < 10) {
            *end_++ = static_cast<char>('0' + size);
        } else if (size < 100) {
            *end_++ = static_cast<char>('0' + size / 10);
            *end_++ = static_cast<char>('0' + size % 10);
        } else {
            end_ = write_number(end_, static_cast<int64_t>(size));
        }

        add_raw(kLineEnd);
    }

    char *begin_;
    char *end_;
};

}  // namespace sl
