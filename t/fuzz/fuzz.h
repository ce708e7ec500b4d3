/*
 * What every fuzz target starts from. A target is one function: it is given
 * bytes that somebody made up, hands them to the code, and checks what must
 * hold whatever they are.
 */

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What must hold. Not an assert(): it is there in every build. */
#define check(condition)                                                       \
    do {                                                                       \
        if (!(condition)) {                                                    \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__,  \
                    #condition);                                               \
            abort();                                                           \
        }                                                                      \
    } while (0)

/* The bytes of an input, taken one after the other. When there are none left,
 * numbers are 0 and texts are empty. */
class Input {
  public:
    Input(const uint8_t *data, size_t size)
        : rest_(reinterpret_cast<const char *>(data), size)
    {}

    template <typename Number>
    Number number()
    {
        Number n{};

        rest_.remove_prefix(
            rest_.copy(reinterpret_cast<char *>(&n), sizeof(n)));

        return n;
    }

    /* What stands before the next `end`, which is taken, too, or all if there
     * is none. Memory of its own: to read past it is noticed. */
    std::string text_before(char end)
    {
        std::string text{rest_.substr(0, rest_.find(end))};

        rest_.remove_prefix(std::min(rest_.size(), text.size() + 1));

        return text;
    }

    /* At most so many bytes. */
    std::string text(size_t size)
    {
        std::string text{rest_.substr(0, size)};

        rest_.remove_prefix(text.size());

        return text;
    }

    std::string rest() const { return std::string{rest_}; }

    bool is_empty() const { return rest_.empty(); }

  private:
    std::string_view rest_;
};
