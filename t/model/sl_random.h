/* Random numbers for the tests: the same ones for the same seed. */

#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string_view>

namespace sl_model {

/* The same numbers everywhere, unlike the standard's distributions. */
class Random {
  public:
    explicit Random(uint64_t seed) : engine_(seed) {}

    /* Numbers that a fuzzer chooses, as far as its bytes go; chance chooses the
     * others. */
    explicit Random(std::string_view bytes) : bytes_(bytes) {}

    /* From 0 to n - 1. */
    int64_t below(int64_t n)
    {
        return static_cast<int64_t>(any(static_cast<uint64_t>(n))
                                    % static_cast<uint64_t>(n));
    }

    int64_t between(int64_t low, int64_t high)
    {
        return low + below(high - low + 1);
    }

    bool chance(int percent) { return below(100) < percent; }

    /* From 1 to `high`, mostly small. */
    int64_t of_any_size(int64_t high)
    {
        int64_t bound = 10;

        while (bound < high && chance(50)) {
            bound *= 10;
        }

        return between(1, std::min(bound, high));
    }

  private:
    std::mt19937_64 engine_;
    std::string_view bytes_;

    /* A number that may well be n - 1. */
    uint64_t any(uint64_t n)
    {
        if (bytes_.empty()) {
            return engine_();
        }

        uint64_t number = 0;

        for (uint64_t most = n - 1; most > 0 && !bytes_.empty(); most >>= 8) {
            number = number << 8 | static_cast<uint8_t>(bytes_.front());
            bytes_.remove_prefix(1);
        }

        return number;
    }
};

}  // namespace sl_model
