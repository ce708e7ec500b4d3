#include "redis/pure/sl_key.h"

#include <cstring>

#include "base/pure/sl_sha256.h"

namespace sl {

namespace {

constexpr char kHashMark = '#';

bool is_ordinary(std::string_view key)
{
    if (key.empty() || key.size() > kMaxReadableKey || key[0] == kHashMark) {
        return false;
    }

    for (unsigned char ch : key) {
        if (ch < 0x20 || ch == 0x7f || ch == '{' || ch == '}') {
            return false;
        }
    }

    return true;
}

void append(RedisKey &to, std::string_view text)
{
    memcpy(to.data + to.size, text.data(), text.size());
    to.size += text.size();
}

}  // namespace

bool is_key_prefix(std::string_view text) noexcept
{
    static_assert(kMaxKeyPrefix == kMaxZoneName, "the same rules");

    return is_zone_name(text);
}

RedisKey redis_key(std::string_view prefix, std::string_view zone,
                   std::string_view key, KeyStyle style) noexcept
{
    static_assert(kMaxReadableKey >= kSha256HexSize + 1, "a hash must fit");

    bool in_braces = style == KeyStyle::kInBraces;
    RedisKey name;
    name.size = 0;

    append(name, prefix);
    append(name, ":");
    append(name, zone);
    append(name, in_braces ? ":{" : ":");

    if (is_ordinary(key)) {
        append(name, key);
    } else {
        append(name, {&kHashMark, 1});
        sha256_hex(key.data(), key.size(), name.data + name.size);
        name.size += kSha256HexSize;
    }

    append(name, in_braces ? "}" : "");

    return name;
}

}  // namespace sl
