#include "monitor/sl_own_host.h"

#include "monitor/pure/sl_own_page.h"
#include "request/sl_conf.h"

namespace sl {

namespace {

bool is_address(const ngx_str_t &host)
{
#if (NGX_HAVE_INET6)
    u_char ipv6[16];

    if (host.len > 2 && host.data[0] == '[') {
        return ngx_inet6_addr(host.data + 1, host.len - 2, ipv6) == NGX_OK;
    }
#endif

    return ngx_inet_addr(host.data, host.len) != INADDR_NONE;
}

#if (NGX_PCRE)

bool matches(const ngx_http_server_name_t &name, ngx_str_t host)
{
    return ngx_regex_exec(name.regex->regex, &host, nullptr, 0) >= 0;
}

/*
 * A regular expression counts if it says how names end. One that also matches
 * the name with something behind it, as "~^admin\." or "~.", matches names in
 * domains of others.
 */
bool is_matched(ngx_http_request_t *r, const ngx_http_server_name_t &name,
                const ngx_str_t &host)
{
    ngx_str_t suffix = ngx_string(".invalid");
    auto *data =
        static_cast<u_char *>(ngx_pnalloc(r->pool, host.len + suffix.len));

    if (data == nullptr || !matches(name, host)) {
        return false;
    }

    ngx_memcpy(ngx_cpymem(data, host.data, host.len), suffix.data, suffix.len);

    return !matches(name, {host.len + suffix.len, data});
}

#endif

bool is_server_name(ngx_http_request_t *r, const ngx_str_t &host)
{
    for (const ngx_http_server_name_t &name :
         location_conf(r)->metrics.server_names)
    {
#if (NGX_PCRE)
        if (name.regex != nullptr) {
            if (is_matched(r, name, host)) {
                return true;
            }

            continue;
        }
#endif

        if (is_name_of(view(name.name), view(host))) {
            return true;
        }
    }

    return false;
}

}  // namespace

bool is_own_host(ngx_http_request_t *r) noexcept
{
    /* in lower case, and without a port */
    const ngx_str_t &host = r->headers_in.server;

    return host.len > 0
           && (view(host) == "localhost" || is_address(host)
               || is_listed(view(location_conf(r)->metrics.hosts), view(host))
               || is_server_name(r, host));
}

}  // namespace sl
