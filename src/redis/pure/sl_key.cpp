#include "redis/pure/sl_key.h"

#include <cstring>

namespace sl {

namespace {

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
    bool in_braces = style == KeyStyle::kInBraces;
    RedisKey name;
    name.size = 0;

    append(name, prefix);
    append(name, ":");
    append(name, zone);
    append(name, in_braces ? ":{" : ":");

    name.size += readable_key(key, name.data + name.size);
    append(name, in_braces ? "}" : "");

    return name;
}

}  // namespace sl
