#include "config/pure/sl_value_variables.h"

#include <algorithm>

#include "base/pure/sl_words.h"

namespace sl {

namespace {

/* Names that end in "*" stand for all that begin so. nginx reads the body of a
 * request only when it asks somebody for the response. */
constexpr std::string_view kOfResponse[] = {
    "status",
    "bytes_sent",
    "body_bytes_sent",
    "gzip_ratio",
    "request_body",
    "request_body_file",
    "request_time",
    "request_completion",
    "sent_http_*",
    "sent_trailer_*",
    "upstream_http_*",
    "upstream_trailer_*",
    "upstream_cookie_*",
    "upstream_addr",
    "upstream_bytes_received",
    "upstream_bytes_sent",
    "upstream_cache_etag",
    "upstream_cache_last_modified",
    "upstream_cache_status",
    "upstream_connect_time",
    "upstream_header_time",
    "upstream_response_length",
    "upstream_response_time",
    "upstream_status",
};

/* A client writes what it likes into these, or nothing. */
constexpr std::string_view kWritten[] = {
    "arg_*",  "args",         "content_length",  "content_type",   "cookie_*",
    "http_*", "query_string", "ssl_server_name", "ssl_session_id", "uid_got",
};

/* A client can leave these out, but not make them up. $remote_user is not among
 * them: whoever sends no name tries no password. */
constexpr std::string_view kLeftOut[] = {
    "is_args",
    "ssl_client_cert",
    "ssl_client_escaped_cert",
    "ssl_client_fingerprint",
    "ssl_client_i_dn*",
    "ssl_client_raw_cert",
    "ssl_client_s_dn*",
    "ssl_client_serial",
};

/* A client can add something of its own to these, but not leave them out. */
constexpr std::string_view kAddedTo[] = {
    "proxy_add_x_forwarded_for",
    "request",
    "request_uri",
};

bool is_named(std::string_view name, std::string_view pattern)
{
    if (pattern.back() == '*') {
        pattern.remove_suffix(1);
        name = name.substr(0, pattern.size());
    }

    return is_same_word(name, pattern);
}

template <size_t N>
bool is_among(std::string_view name, const std::string_view (&patterns)[N])
{
    return std::any_of(patterns, patterns + N, [&](std::string_view pattern) {
        return is_named(name, pattern);
    });
}

bool is_left_out(std::string_view name)
{
    return is_among(name, kWritten) || is_among(name, kLeftOut);
}

bool is_made_up(std::string_view name)
{
    return is_among(name, kWritten) || is_among(name, kAddedTo);
}

/* Whether there is something, and all of it are variables for which is_one()
 * holds. */
template <typename Predicate>
bool has_only(std::string_view text, Predicate is_one)
{
    bool only = !text.empty();

    while (only && !text.empty()) {
        std::string_view name = take_variable(&text);

        only = !name.empty() && is_one(name);
    }

    return only;
}

}  // namespace

std::string_view take_variable(std::string_view *text) noexcept
{
    if (text->front() != '$') {
        text->remove_prefix(std::min(text->find('$'), text->size()));
        return {};
    }

    bool is_braced = text->substr(0, 2) == "${";
    text->remove_prefix(is_braced ? 2 : 1);

    std::string_view name = text->substr(0, variable_name_size(*text));
    text->remove_prefix(name.size());

    if (is_braced && text->substr(0, 1) == "}") {
        text->remove_prefix(1);
    }

    return name;
}

bool has_variable(std::string_view text, std::string_view name) noexcept
{
    auto is_it = [&](std::string_view other) {
        return is_same_word(name, other);
    };

    return !find_variable(text, is_it).empty();
}

bool is_of_response(std::string_view name) noexcept
{
    return is_among(name, kOfResponse);
}

bool can_be_left_out(std::string_view text) noexcept
{
    return has_only(text, is_left_out);
}

std::string_view find_made_up(std::string_view text) noexcept
{
    return can_be_left_out(text) ? std::string_view()
                                 : find_variable(text, is_made_up);
}

}  // namespace sl
