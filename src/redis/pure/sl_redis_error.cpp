#include "redis/pure/sl_redis_error.h"

#include "base/pure/sl_words.h"

namespace sl {

namespace {

bool begins_with(std::string_view text, std::string_view start)
{
    return text.substr(0, start.size()) == start;
}

/*
 * Valkey has no engine for Lua unless that was built in or is loaded as a
 * module. A command that was renamed or that a server does not have is unknown;
 * its name most often stands in quotes, which differ from version to version.
 */
bool says_no_scripting(std::string_view message)
{
    constexpr std::string_view kUnknown = "ERR unknown command ";
    constexpr std::string_view kQuotes = "'`\"";

    if (begins_with(message, "ERR Could not find scripting engine")) {
        return true;
    }

    if (!begins_with(message, kUnknown)) {
        return false;
    }

    std::string_view name = message.substr(kUnknown.size());
    bool is_quoted = !name.empty() && kQuotes.find(name[0]) != kQuotes.npos;

    name.remove_prefix(is_quoted ? 1 : 0);

    size_t end = name.find_first_of(is_quoted ? kQuotes : " ");

    /* without its end it may be the beginning of another one */
    if (is_quoted && end == name.npos) {
        return false;
    }

    name = name.substr(0, end);

    return is_same_word(name, "SCRIPT") || is_same_word(name, "EVALSHA");
}

}  // namespace

RedisError classify_redis_error(std::string_view message) noexcept
{
    struct Known {
        std::string_view prefix;
        RedisError kind;
    };

    static constexpr Known kKnown[] = {
        {"NOSCRIPT", RedisError::kNoScript},
        {"MOVED", RedisError::kElsewhere},
        {"ASK", RedisError::kElsewhere},
        {"TRYAGAIN", RedisError::kElsewhere},
        {"CROSSSLOT", RedisError::kCrossSlot},
        {"LOADING", RedisError::kUnavailable},
        {"OOM", RedisError::kUnavailable},
        {"READONLY", RedisError::kUnavailable},
        {"BUSY", RedisError::kUnavailable},
        {"MISCONF", RedisError::kUnavailable},
        {"NOREPLICAS", RedisError::kUnavailable},
        {"MASTERDOWN", RedisError::kUnavailable},
        {"CLUSTERDOWN", RedisError::kUnavailable},
        {"NOAUTH", RedisError::kForbidden},
        {"WRONGPASS", RedisError::kForbidden},
        {"NOPERM", RedisError::kForbidden},
    };

    std::string_view word = message.substr(0, message.find(' '));

    for (const Known &known : kKnown) {
        if (word == known.prefix) {
            return known.kind;
        }
    }

    return says_no_scripting(message) ? RedisError::kNoScripting
                                      : RedisError::kThisCall;
}

}  // namespace sl
