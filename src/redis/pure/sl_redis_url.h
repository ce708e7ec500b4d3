/*
 * The address of a Redis:
 *
 *   redis://[user[:password]@]host[:port][/db]
 *   rediss://..., the same with TLS
 *   sentinel://[user[:password]@]host[:port][,host[:port]...]/primary[/db]
 *   cluster://[user[:password]@]host[:port][,host[:port]...]
 *   unix:/path
 *
 * Parsing only takes it apart; what the parts may be is the caller's business.
 */

#pragma once

#include <cstddef>
#include <string_view>

namespace sl {

enum class RedisScheme { kRedis, kSentinel, kCluster, kUnix };

struct RedisUrl {
    RedisScheme scheme;

    /* Path of a unix socket. */
    std::string_view socket;

    /* host[:port] as written, with a ',' between them; IPv6 addresses in
     * brackets. Empty for a socket. */
    std::string_view addresses;

    /* What Sentinels call the primary. */
    std::string_view primary;

    /* Percent-encoded as in the URL; empty if absent. */
    std::string_view user;
    std::string_view password;
    std::string_view db;

    /* The scheme asks for TLS. */
    bool has_tls;
};

/*
 * Takes `text` apart; the parts point into it. Returns nullptr, or else what
 * is wrong with it, to follow the quoted URL in an error message.
 */
const char *parse_redis_url(std::string_view text, RedisUrl *url) noexcept;

/*
 * Where the password stands in `text`, or what could be one if it is not a
 * valid URL; empty if there is none. Error messages leave it out.
 */
std::string_view find_password(std::string_view text) noexcept;

/*
 * Decodes %XX from `text` into `to`, which has room for text.size() bytes.
 * Returns the decoded size, or npos if a '%' is not followed by two hex digits.
 */
size_t percent_decode(std::string_view text, char *to) noexcept;

}  // namespace sl
