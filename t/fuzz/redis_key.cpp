/*
 * Names in Redis. Whatever clients send as keys: two different sets of prefix,
 * zone, format and key never share a name, and no key chooses its slot in a
 * cluster.
 */

#include "redis/pure/sl_key.h"

#include <tuple>

#include "fuzz.h"
#include "redis/pure/sl_cluster_slot.h"

namespace {

using sl::KeyStyle;

/* The configuration allows no others. */
std::string to_name(std::string text)
{
    constexpr std::string_view kAllowed =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

    text = text.empty() ? "z" : text.substr(0, sl::kMaxZoneName);

    for (char &ch : text) {
        ch = kAllowed[static_cast<uint8_t>(ch) % kAllowed.size()];
    }

    check(sl::is_zone_name(text));
    check(sl::is_key_prefix(text));

    return text;
}

struct Parts {
    std::string prefix;
    std::string zone;
    sl::KeyFormat format;
    std::string key;

    bool operator==(const Parts &other) const
    {
        return std::tie(prefix, zone, key)
                   == std::tie(other.prefix, other.zone, other.key)
               && format.view() == other.format.view();
    }
};

/* A part of the name of the zone says it. */
sl::KeyFormat format_of(const std::string &zone)
{
    constexpr sl::Algorithm kAlgorithms[] = {
        sl::Algorithm::kLog, sl::Algorithm::kPacked, sl::Algorithm::kBuckets};

    auto last = static_cast<unsigned char>(zone.back());

    return sl::KeyFormat(kAlgorithms[last % 3], 1 + last % 100,
                         int64_t{1 + last % 7} * 1000000);
}

Parts take_parts(Input *input)
{
    Parts parts;

    parts.prefix = to_name(input->text_before('\n'));

    std::string zone = input->text_before('\n');

    parts.format = zone.empty() ? sl::KeyFormat() : format_of(zone);
    parts.zone = to_name(zone);

    return parts;
}

std::string name_of(const Parts &parts, KeyStyle style)
{
    return std::string(
        sl::redis_key(parts.prefix, parts.zone, parts.key, style, parts.format)
            .view());
}

void check_name(const Parts &parts)
{
    std::string plain = name_of(parts, KeyStyle::kPlain);
    std::string braced = name_of(parts, KeyStyle::kInBraces);
    std::string format(parts.format.view());
    std::string front = parts.prefix + ":" + parts.zone
                        + (format.empty() ? "" : "!" + format) + ":";
    std::string shown = plain.substr(front.size());

    check(plain == front + shown);
    check(braced == front + "{" + shown + "}");

    /* a cluster hashes what is shown of the key, and nothing else */
    check(!shown.empty());
    check(shown.find_first_of("{}") == std::string::npos);
    check(sl::cluster_slot(braced) == sl::cluster_slot(shown));

    /* it can be read where it is the key, and else is a mark and a hash */
    bool is_readable = shown == parts.key;

    check(is_readable
          || (shown.size() == 65 && shown[0] == '#'
              && shown.find_first_not_of("0123456789abcdef", 1)
                     == std::string::npos));
    check(!is_readable || shown[0] != '#');

    for (unsigned char ch : shown) {
        check(ch >= 0x20 && ch != 0x7f);
    }

    /* whoever sends what is shown of another key does not become the other */
    if (!is_readable) {
        check(name_of({parts.prefix, parts.zone, parts.format, shown},
                      KeyStyle::kPlain)
              != plain);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Input input(data, size);
    Parts a = take_parts(&input);
    Parts b = take_parts(&input);

    a.key = input.text_before('\n');
    b.key = input.rest();

    check_name(a);
    check_name(b);

    for (KeyStyle style : {KeyStyle::kPlain, KeyStyle::kInBraces}) {
        check((name_of(a, style) == name_of(b, style)) == (a == b));
    }

    check(name_of(a, KeyStyle::kPlain) != name_of(b, KeyStyle::kInBraces));

    return 0;
}
