#include "base/pure/sl_readable_key.h"

#include <algorithm>

#include "base/pure/sl_sha256.h"

namespace sl {

namespace {

constexpr char kHashMark = '#';

bool is_ordinary(std::string_view key)
{
    if (key.empty() || key.size() > kMaxReadableKey || key[0] == kHashMark) {
        return false;
    }

    return std::none_of(key.begin(), key.end(), [](unsigned char ch) {
        return ch < 0x20 || ch == 0x7f || ch == '{' || ch == '}';
    });
}

}  // namespace

size_t readable_key(std::string_view key, char *to) noexcept
{
    static_assert(kMaxReadableKey >= 1 + kSha256HexSize, "a hash must fit");

    if (is_ordinary(key)) {
        return key.copy(to, key.size());
    }

    to[0] = kHashMark;
    sha256_hex(key.data(), key.size(), to + 1);

    return 1 + kSha256HexSize;
}

bool is_whole_key(std::string_view readable) noexcept
{
    return readable.empty() || readable[0] != kHashMark;
}

}  // namespace sl
