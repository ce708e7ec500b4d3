#include "redis/pure/sl_key.h"

#include <cstring>

#include "base/pure/sl_sha256.h"

namespace sl {

namespace {

constexpr std::string_view kPackedFormat = "p";

/* The same for both kinds of names, which differ in their room only. */
template <typename Name>
void append(Name &to, std::string_view text)
{
    memcpy(to.data + to.size, text.data(), text.size());
    to.size += text.size();
}

bool take_front(std::string_view *text, std::string_view front)
{
    if (text->substr(0, front.size()) != front) {
        return false;
    }

    text->remove_prefix(front.size());

    return true;
}

/* Whether readable_key() writes such texts. */
bool is_readable(std::string_view text)
{
    char again[kMaxReadableKey];

    if (is_whole_key(text)) {
        return std::string_view(again, readable_key(text, again)) == text;
    }

    return text.size() == 1 + kSha256HexSize
           && text.find_first_not_of("0123456789abcdef", 1) == text.npos;
}

/* A number as write_number() writes it. */
bool is_plain_number(std::string_view text)
{
    return !text.empty() && text.size() < kMaxDigits && text[0] != '0'
           && text.find_first_not_of("0123456789") == text.npos;
}

bool is_format(std::string_view text)
{
    size_t by = text.find('x');

    return text == kPackedFormat
           || (by != text.npos && is_plain_number(text.substr(0, by))
               && is_plain_number(text.substr(by + 1)));
}

/* What stands between the zone and the key: ':', or '!', a format and ':'. */
bool take_format(std::string_view *text)
{
    std::string_view format = text->substr(0, text->find(':'));

    if (format.size() == text->size()) {
        return false;
    }

    text->remove_prefix(format.size() + 1);

    return format.empty() || (take_front(&format, "!") && is_format(format));
}

}  // namespace

KeyFormat::KeyFormat(Algorithm algorithm, unsigned buckets,
                     int64_t window_us) noexcept
    : KeyFormat()
{
    char *end = data_;

    switch (algorithm) {
    case Algorithm::kLog:
        break;

    case Algorithm::kPacked:
        end += kPackedFormat.copy(end, kPackedFormat.size());
        break;

    case Algorithm::kBuckets:
        end = write_number(end, buckets);
        *end++ = 'x';
        end = write_number(end, window_us / 1000);
        break;
    }

    size_ = static_cast<size_t>(end - data_);
}

bool is_key_prefix(std::string_view text) noexcept
{
    static_assert(kMaxKeyPrefix == kMaxZoneName, "the same rules");

    return is_zone_name(text);
}

RedisKey redis_key(std::string_view prefix, std::string_view zone,
                   std::string_view key, KeyStyle style,
                   const KeyFormat &format) noexcept
{
    bool in_braces = style == KeyStyle::kInBraces;
    RedisKey name;
    name.size = 0;

    append(name, prefix);
    append(name, ":");
    append(name, zone);
    append(name, format.view().empty() ? "" : "!");
    append(name, format.view());
    append(name, in_braces ? ":{" : ":");

    name.size += readable_key(key, name.data + name.size);
    append(name, in_braces ? "}" : "");

    return name;
}

/* ---- by which clients are found ---- */

namespace {

/* PREFIX:ZONE, and what follows. */
void begin(IndexKey &name, std::string_view prefix, std::string_view zone,
           std::string_view next)
{
    name.size = 0;

    append(name, prefix);
    append(name, ":");
    append(name, zone);
    append(name, next);
}

}  // namespace

IndexKey index_key(std::string_view prefix, std::string_view zone,
                   const RedisKey &of, KeyStyle style) noexcept
{
    IndexKey name;
    std::string_view tag = of.view();

    /* there it has the braces already */
    if (style == KeyStyle::kInBraces) {
        tag = tag.substr(tag.find('{') + 1);
        tag.remove_suffix(1);
    }

    begin(name, prefix, zone, "!:{");
    append(name, tag);
    append(name, "}");

    return name;
}

IndexKey index_pattern(std::string_view prefix, std::string_view zone) noexcept
{
    IndexKey pattern;

    begin(pattern, prefix, zone, "!:*");

    return pattern;
}

std::string_view client_of_index(std::string_view name, std::string_view prefix,
                                 std::string_view zone, KeyStyle style) noexcept
{
    IndexKey front;

    begin(front, prefix, zone, "!:{");

    if (!take_front(&name, front.view()) || name.empty() || name.back() != '}')
    {
        return {};
    }

    name.remove_suffix(1);
    begin(front, prefix, zone, "");

    if (style == KeyStyle::kPlain
        && !(take_front(&name, front.view()) && take_format(&name)))
    {
        return {};
    }

    return is_readable(name) ? name : std::string_view{};
}

}  // namespace sl
