#include "usage/pure/sl_usage_paths.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <type_traits>

namespace sl {

/* It stands in memory of nginx, which calls no destructors. */
static_assert(std::is_trivially_destructible_v<UsagePaths>);

namespace {

/* Cuts the first name off. */
std::string_view take_name(std::string_view *path)
{
    std::string_view name = path->substr(0, path->find('.'));

    path->remove_prefix(std::min(path->size(), name.size() + 1));

    return name;
}

/* As JavaScript has it: "0" and "10" are, "01" is a key of objects alone. */
bool is_index(std::string_view name, uint64_t *index)
{
    const char *end = name.data() + name.size();

    if (name.size() > 1 && name[0] == '0') {
        return false;
    }

    auto [read_to, error] = std::from_chars(name.data(), end, *index);

    return error == std::errc() && read_to == end;
}

}  // namespace

bool UsagePaths::is_path(std::string_view text) noexcept
{
    /* an empty name would stand behind it */
    if (text.empty() || text.back() == '.') {
        return false;
    }

    for (size_t names = 0; !text.empty(); names++) {
        std::string_view name = take_name(&text);

        if (name.empty() || name.size() > kLongestName || names == kMostNames) {
            return false;
        }
    }

    return true;
}

bool UsagePaths::add(std::string_view path) noexcept
{
    if (is_full() || !is_path(path)) {
        return false;
    }

    for (size_t level = 0; !path.empty(); level++) {
        add_name(take_name(&path), level);
    }

    size_++;

    return true;
}

void UsagePaths::add_name(std::string_view name, size_t level) noexcept
{
    Set itself = static_cast<Set>(1U << size_);
    Name *to = &names_[level][size_];

    to->text = name;
    looks_[level] |= uint64_t{1} << look_of(name);
    continuing_[level] |= itself;

    if (is_index(name, &to->index)) {
        indexing_[level] |= itself;
    }
}

UsagePaths::Set UsagePaths::compare(std::string_view name, size_t level,
                                    Set among) const noexcept
{
    Set equal = 0;

    for (unsigned i = 0; among >> i != 0; i++) {
        if ((among >> i & 1) != 0 && names_[level][i].text == name) {
            equal |= static_cast<Set>(1U << i);
        }
    }

    return equal;
}

UsagePaths::Set UsagePaths::indexed(uint64_t index, size_t level,
                                    Set among) const noexcept
{
    Set equal = 0;

    among &= indexing_[level];

    for (unsigned i = 0; among >> i != 0; i++) {
        if ((among >> i & 1) != 0 && names_[level][i].index == index) {
            equal |= static_cast<Set>(1U << i);
        }
    }

    return equal;
}

}  // namespace sl
