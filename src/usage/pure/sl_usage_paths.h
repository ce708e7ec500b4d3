/* Where in a response the number stands that says what the request has cost:
 * the paths of a sliding_limit_usage directive. */

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sl {

/*
 * Some paths, such as "usage.total_tokens", each of names that dots separate.
 *
 * What is asked about them is asked for all of them at once: a set of paths is
 * a number of which bit N stands for the path that was added as Nth. A level is
 * how many names stand before the one in question.
 *
 * The texts are not copied: they must be there as long as this is.
 */
class UsagePaths {
  public:
    using Set = uint8_t;

    static constexpr size_t kMostPaths = 8;
    static constexpr size_t kMostNames = 8;
    static constexpr size_t kLongestName = 64;

    /* Whether `text` is a path: one to eight names of 1 to 64 bytes. */
    static bool is_path(std::string_view text) noexcept;

    bool is_empty() const noexcept { return size_ == 0; }
    bool is_full() const noexcept { return size_ == kMostPaths; }

    /* False, and nothing is added: it is no path, or there are enough. */
    bool add(std::string_view path) noexcept;

    Set all() const noexcept { return continuing_[0]; }

    /* Those that have a name at this level. */
    Set continuing(size_t level) const noexcept { return continuing_[level]; }

    /* Those that have so many names and no more. */
    Set ending(size_t names) const noexcept
    {
        return static_cast<Set>(continuing_[names - 1] & ~continuing_[names]);
    }

    /* Those whose name at this level is an index as well. */
    Set indexing(size_t level) const noexcept { return indexing_[level]; }

    /* Those among others that have this name there. */
    Set named(std::string_view name, size_t level, Set among) const noexcept
    {
        return name.empty() || (looks_[level] >> look_of(name) & 1) == 0
                   ? Set{0}
                   : compare(name, level, among);
    }

    /* Those among others that have this index there. */
    Set indexed(uint64_t index, size_t level, Set among) const noexcept;

  private:
    struct Name {
        std::string_view text;
        uint64_t index = 0; /* if indexing_ has it */
    };

    /* By this most names can be told apart: a number below 64. */
    static unsigned look_of(std::string_view name) noexcept
    {
        return (static_cast<unsigned>(name.size()) * 8
                + static_cast<unsigned char>(name[0]))
               % 64;
    }

    Set compare(std::string_view name, size_t level, Set among) const noexcept;
    void add_name(std::string_view name, size_t level) noexcept;

    /* By level, so that those compared with each other stand together. */
    Name names_[kMostNames][kMostPaths];

    /* By level; bit N: some name looks so. */
    uint64_t looks_[kMostNames] = {};

    /* No path goes on after the last level. */
    Set continuing_[kMostNames + 1] = {};

    Set indexing_[kMostNames] = {};
    uint8_t size_ = 0;
};

}  // namespace sl
