/*
 * URLs of a Redis. Put together again, the parts are the URL: none is lost, and
 * none is somewhere else. Messages never show a password.
 */

#include "redis/pure/sl_redis_url.h"

#include "fuzz.h"

namespace {

using sl::RedisScheme;
using sl::RedisUrl;

bool has(std::string_view text, std::string_view signs)
{
    return text.find_first_of(signs) != std::string_view::npos;
}

bool is_within(std::string_view part, const std::string &text)
{
    return part.empty()
           || (part.data() >= text.data()
               && part.data() + part.size() <= text.data() + text.size());
}

/* How the URL begins. */
std::string scheme_of(const RedisUrl &url)
{
    switch (url.scheme) {
    case RedisScheme::kRedis:
        return url.has_tls ? "rediss://" : "redis://";
    case RedisScheme::kSentinel:
        return "sentinel://";
    case RedisScheme::kCluster:
        return "cluster://";
    case RedisScheme::kUnix:
        break;
    }

    return "unix:";
}

/* The text, without what may stand there or not: a ':' or an '@' with nothing
 * behind or before it, a '/' at the end. */
std::string without_empty_parts(std::string text, const RedisUrl &url)
{
    auto drop = [&text](size_t at, size_t count) {
        text.erase(at, count);
    };
    size_t at = text.rfind('@');
    size_t begin = scheme_of(url).size();

    if (at != std::string::npos && url.password.empty() && text[at - 1] == ':'
        && at - 1 >= begin)
    {
        drop(--at, 1);
    }

    if (at == begin) {
        drop(at, 1);
    }

    if (url.db.empty() && text.back() == '/') {
        text.pop_back();
    }

    return text;
}

std::string put_together(const RedisUrl &url)
{
    std::string text = scheme_of(url) + std::string(url.user);

    if (!url.password.empty()) {
        text += ":" + std::string(url.password);
    }

    if (!url.user.empty() || !url.password.empty()) {
        text += "@";
    }

    text += std::string(url.addresses);

    if (!url.primary.empty()) {
        text += "/" + std::string(url.primary);
    }

    if (!url.db.empty()) {
        text += "/" + std::string(url.db);
    }

    return text + std::string(url.socket);
}

void check_parts(const std::string &text, const RedisUrl &url)
{
    for (std::string_view part : {url.socket, url.addresses, url.primary,
                                  url.user, url.password, url.db})
    {
        check(is_within(part, text));
    }

    if (url.scheme == RedisScheme::kUnix) {
        check(put_together(url) == text);
        check(!url.socket.empty() && url.addresses.empty());
        return;
    }

    check(put_together(url) == without_empty_parts(text, url));
    check(!url.addresses.empty() && !has(url.addresses, "/@"));
    check(!has(url.user, ":"));
    check(url.primary.empty() == (url.scheme != RedisScheme::kSentinel));
    check(!has(url.primary, "/@"));
    check(!has(url.db, "@"));
    check(url.db.empty() || url.scheme != RedisScheme::kCluster);
    check(!url.has_tls || url.scheme == RedisScheme::kRedis);
    check(url.password == sl::find_password(text));
}

/* What messages show says all but the password. */
void check_masked(const std::string &text, bool is_valid)
{
    std::string_view password = sl::find_password(text);

    if (password.empty()) {
        return;
    }

    check(is_within(password, text));

    auto before = static_cast<size_t>(password.data() - text.data());
    std::string masked = text;

    masked.replace(before, password.size(), "***");
    check(sl::find_password(masked) == "***");

    RedisUrl url;
    RedisUrl shown;

    if (is_valid) {
        check(sl::parse_redis_url(text, &url) == nullptr);
        check(sl::parse_redis_url(masked, &shown) == nullptr);
        check(shown.user == url.user && shown.addresses == url.addresses);
        check(shown.primary == url.primary && shown.db == url.db);
    }
}

/* Any bytes come through, percent-encoded in any way. */
void check_decoding(const std::string &text)
{
    std::string decoded(text.size(), '\0');
    size_t size = sl::percent_decode(text, decoded.data());

    check(size == std::string::npos || size <= text.size());
    check(size == text.size() || text.find('%') != std::string::npos);

    std::string encoded;

    for (unsigned char ch : text) {
        char hex[4];

        snprintf(hex, sizeof(hex), ch & 1 ? "%%%02x" : "%%%02X", ch);
        encoded += ch == '%' || ch % 3 == 0 ? std::string(hex)
                                            : std::string(1, char(ch));
    }

    std::string again(encoded.size(), '\0');

    again.resize(sl::percent_decode(encoded, again.data()));
    check(again == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    std::string text = Input(data, size).rest();
    RedisUrl url;
    const char *error = sl::parse_redis_url(text, &url);

    if (error == nullptr) {
        check_parts(text, url);
    } else {
        check(*error != '\0');
    }

    check_masked(text, error == nullptr);
    check_decoding(text);

    return 0;
}
