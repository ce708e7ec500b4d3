#include "redis/pure/sl_redis_url.h"

#include <algorithm>
#include <iterator>

#include "base/pure/sl_words.h"

namespace sl {

namespace {

constexpr auto npos = std::string_view::npos;
constexpr std::string_view kUnix = "unix:";

struct Scheme {
    std::string_view start;
    RedisScheme scheme;
    bool has_tls;
    const char *without_host;
};

constexpr Scheme kSchemes[] = {
    {"redis://", RedisScheme::kRedis, false,
     "has no host, as in redis://127.0.0.1:6379"},
    {"rediss://", RedisScheme::kRedis, true,
     "has no host, as in rediss://127.0.0.1:6379"},
    {"sentinel://", RedisScheme::kSentinel, false,
     "has no host, as in sentinel://10.0.0.1:26379,10.0.0.2:26379/mymaster"},
    {"cluster://", RedisScheme::kCluster, false,
     "has no host, as in cluster://10.0.0.1:6379,10.0.0.2:6379"},
};

bool starts_with(std::string_view text, std::string_view start)
{
    return text.substr(0, start.size()) == start;
}

/* Takes what stands before the next '/', and the '/', too. */
std::string_view take_part(std::string_view *text)
{
    size_t slash = text->find('/');
    std::string_view part = text->substr(0, slash);

    text->remove_prefix(slash == npos ? text->size() : slash + 1);

    return part;
}

const char *parse_socket(std::string_view path, RedisUrl *url)
{
    url->scheme = RedisScheme::kUnix;
    url->socket = path;

    /* unix:///path is a path; what stands in unix://here/path is not */
    bool has_host = starts_with(path, "//") && !starts_with(path, "///");

    return path.empty() || has_host
               ? "must be unix: and a path, as in unix:/run/redis.sock"
               : nullptr;
}

}  // namespace

std::string_view find_password(std::string_view text) noexcept
{
    size_t at = text.rfind('@');

    if (at == npos) {
        return {};
    }

    std::string_view before = text.substr(0, at);
    size_t scheme = before.find("://");

    if (scheme == npos) {
        return starts_with(text, kUnix) ? std::string_view{} : before;
    }

    size_t colon = before.find(':', scheme + 3);

    return colon == npos ? std::string_view{} : before.substr(colon + 1);
}

const char *parse_redis_url(std::string_view text, RedisUrl *url) noexcept
{
    *url = RedisUrl{};

    if (starts_with(text, kUnix)) {
        return parse_socket(text.substr(kUnix.size()), url);
    }

    const Scheme *scheme = std::find_if(
        std::begin(kSchemes), std::end(kSchemes),
        [text](const Scheme &s) { return starts_with(text, s.start); });

    if (scheme == std::end(kSchemes)) {
        return "must start with redis://, rediss://, sentinel://, cluster:// "
               "or unix:";
    }

    url->scheme = scheme->scheme;
    url->has_tls = scheme->has_tls;

    std::string_view rest = text.substr(scheme->start.size());
    /*
     * The last '@' ends the password, wherever it is: neither host nor database
     * can contain one, and a password with a raw '/' or '@' is still taken for
     * what it is.
     */
    size_t at = rest.rfind('@');

    if (at != npos) {
        std::string_view userinfo = rest.substr(0, at);

        url->user = userinfo.substr(0, userinfo.find(':'));
        url->password = find_password(text);
        rest.remove_prefix(at + 1);
    }

    url->addresses = take_part(&rest);

    if (url->scheme == RedisScheme::kSentinel) {
        url->primary = take_part(&rest);
    }

    url->db = rest;

    if (url->addresses.empty()) {
        return scheme->without_host;
    }

    if (url->scheme == RedisScheme::kSentinel && url->primary.empty()) {
        return "does not say what Sentinels call the primary, as in "
               "sentinel://10.0.0.1:26379/mymaster";
    }

    return url->scheme == RedisScheme::kCluster && !url->db.empty()
               ? "has a database, but a cluster has only one"
               : nullptr;
}

size_t percent_decode(std::string_view text, char *to) noexcept
{
    size_t size = 0;

    for (size_t i = 0; i < text.size(); i++) {
        if (text[i] != '%') {
            to[size++] = text[i];
            continue;
        }

        if (i + 2 >= text.size() || hex_digit(text[i + 1]) < 0
            || hex_digit(text[i + 2]) < 0)
        {
            return npos;
        }

        to[size++] = static_cast<char>(hex_digit(text[i + 1]) * 16
                                       + hex_digit(text[i + 2]));
        i += 2;
    }

    return size;
}

}  // namespace sl
