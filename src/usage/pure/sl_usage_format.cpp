#include "usage/pure/sl_usage_format.h"

#include <algorithm>
#include <iterator>

#include "base/pure/sl_number.h"
#include "base/pure/sl_words.h"

namespace sl {

namespace {

/* Those with several documents one after the other are among them. */
constexpr std::string_view kJsonTypes[] = {
    "application/json",   "text/json",         "application/x-ndjson",
    "application/ndjson", "application/jsonl", "application/x-jsonlines",
};

constexpr std::string_view kJsonSuffix = "+json";
constexpr std::string_view kEventStream = "text/event-stream";

/* Without what follows it, as a charset does. */
std::string_view media_type(std::string_view content_type)
{
    content_type = content_type.substr(0, content_type.find(';'));

    return content_type.substr(0, content_type.find_last_not_of(" \t") + 1);
}

bool is_json(std::string_view type)
{
    if (type.size() > kJsonSuffix.size()
        && is_same_word(type.substr(type.size() - kJsonSuffix.size()),
                        kJsonSuffix))
    {
        return true;
    }

    return std::any_of(
        std::begin(kJsonTypes), std::end(kJsonTypes),
        [type](std::string_view json) { return is_same_word(type, json); });
}

}  // namespace

bool has_usage_format(std::string_view content_type,
                      UsageScanner::Format *format) noexcept
{
    std::string_view type = media_type(content_type);
    bool is_stream = is_same_word(type, kEventStream);

    *format = is_stream ? UsageScanner::Format::kEventStream
                        : UsageScanner::Format::kJson;

    return is_stream || is_json(type);
}

bool is_whole_range(std::string_view content_range) noexcept
{
    constexpr std::string_view kFromStart = "bytes 0-";

    if (!is_same_word(content_range.substr(0, kFromStart.size()), kFromStart)) {
        return false;
    }

    content_range.remove_prefix(kFromStart.size());

    size_t slash = content_range.find('/');

    if (slash == std::string_view::npos) {
        return false;
    }

    int64_t last = parse_count(content_range.substr(0, slash));
    int64_t size = parse_count(content_range.substr(slash + 1));

    return last >= 0 && last + 1 == size;
}

}  // namespace sl
