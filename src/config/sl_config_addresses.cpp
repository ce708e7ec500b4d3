#include "config/sl_config_addresses.h"

#include <sys/un.h>

#include "config/sl_config_util.h"
#include "redis/sl_redis_locator.h"

namespace sl {

namespace {

constexpr in_port_t kDefaultPort = 6379;
constexpr in_port_t kDefaultSentinelPort = 26379;

ngx_array_t *new_endpoints(ngx_conf_t *cf)
{
    return ngx_array_create(cf->pool, 1, sizeof(RedisEndpoint));
}

void use(const ngx_array_t &endpoints, RedisSettings *settings)
{
    settings->endpoints = elements<RedisEndpoint>(endpoints).first;
    settings->endpoint_count = endpoints.nelts;
}

bool add_endpoint(ngx_conf_t *cf, std::string_view host, in_port_t port,
                  ngx_array_t *endpoints)
{
    auto *endpoint = static_cast<RedisEndpoint *>(ngx_array_push(endpoints));

    if (endpoint == nullptr) {
        return false;
    }

    /* an IPv6 address stands in brackets in a URL, but not in hiredis */
    if (host[0] == '[') {
        host = host.substr(1, host.size() - 2);
    }

    *endpoint = {copy_text(cf, host), port};

    return endpoint->host.data != nullptr;
}

bool add_socket(ngx_conf_t *cf, std::string_view path, ngx_array_t *endpoints)
{
    if (path[0] != '/' || path.size() >= sizeof(sockaddr_un::sun_path)) {
        return refuse_value(cf, "socket path", str(path),
                            "an absolute path shorter than 108 bytes");
    }

    return add_endpoint(cf, path, 0, endpoints);
}

/* A name is only noted here: there may be a resolver for it. */
bool add_address(ngx_conf_t *cf, std::string_view address,
                 in_port_t default_port, ngx_array_t *endpoints)
{
    ngx_url_t u;
    ngx_memzero(&u, sizeof(u));

    u.url = str(address);
    u.default_port = default_port;
    u.no_resolve = 1;

    /* nginx would take "unix:name" for a socket */
    if (address.empty() || ngx_parse_url(cf->pool, &u) != NGX_OK
        || u.host.len == 0 || u.family == AF_UNIX)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: %s in \"%V\", must be host or "
                           "host:port with a port from 1 to 65535",
                           u.err ? u.err : "no address", &u.url);
        return false;
    }

    return add_endpoint(cf, view(u.host), u.port ? u.port : default_port,
                        endpoints);
}

/* Adds the one host of a URL, or several with a ',' in between. */
bool add_hosts(ngx_conf_t *cf, const RedisUrl &url, ngx_array_t *endpoints)
{
    std::string_view rest = url.addresses;
    in_port_t default_port = url.scheme == RedisScheme::kSentinel
                                 ? kDefaultSentinelPort
                                 : kDefaultPort;

    for (bool is_last = false; !is_last;) {
        size_t comma = url.scheme == RedisScheme::kRedis
                           ? std::string_view::npos
                           : rest.find(',');

        is_last = comma == std::string_view::npos;

        if (!add_address(cf, rest.substr(0, comma), default_port, endpoints)) {
            return false;
        }

        rest.remove_prefix(is_last ? rest.size() : comma + 1);
    }

    return true;
}

/* Adds all addresses that a name has now. */
bool add_addresses_of(ngx_conf_t *cf, const RedisEndpoint &name,
                      const Place &place, ngx_array_t *endpoints)
{
    ngx_url_t u;
    ngx_memzero(&u, sizeof(u));

    u.url = name.host;
    u.default_port = name.port;

    if (ngx_parse_url(cf->pool, &u) != NGX_OK || u.naddrs == 0) {
        ngx_log_error(
            NGX_LOG_EMERG, cf->log, 0,
            "sliding_limit: %s in \"%V\" in %V:%ui; it must be possible "
            "to look up the host now, or the http block must have a "
            "resolver that can do so later",
            u.err ? u.err : "no address", &u.url, &place.file, place.line);
        return false;
    }

    for (ngx_uint_t i = 0; i < u.naddrs; i++) {
        u_char text[NGX_SOCKADDR_STRLEN];
        size_t size = ngx_sock_ntop(u.addrs[i].sockaddr, u.addrs[i].socklen,
                                    text, sizeof(text), 0);

        if (!add_endpoint(cf, view(text, text + size), name.port, endpoints)) {
            return false;
        }
    }

    return true;
}

ngx_resolver_t *find_resolver(ngx_conf_t *cf)
{
    auto *clcf = static_cast<ngx_http_core_loc_conf_t *>(
        ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module));

    /* without the directive there may be one that knows no name server */
    return clcf->resolver != nullptr && clcf->resolver->connections.nelts > 0
               ? clcf->resolver
               : nullptr;
}

}  // namespace

bool set_addresses(ngx_conf_t *cf, const RedisUrl &url,
                   RedisSettings *settings) noexcept
{
    ngx_array_t *endpoints = new_endpoints(cf);

    if (endpoints == nullptr
        || !(url.scheme == RedisScheme::kUnix
                 ? add_socket(cf, url.socket, endpoints)
                 : add_hosts(cf, url, endpoints)))
    {
        return false;
    }

    use(*endpoints, settings);

    return true;
}

bool look_up_host_names(ngx_conf_t *cf, const NamedStore &store) noexcept
{
    RedisSettings *settings = store.settings;

    settings->resolver = find_resolver(cf);

    if (settings->resolver != nullptr) {
        return true;
    }

    ngx_array_t *endpoints = new_endpoints(cf);

    if (endpoints == nullptr) {
        return false;
    }

    for (ngx_uint_t i = 0; i < settings->endpoint_count; i++) {
        const RedisEndpoint &endpoint = settings->endpoints[i];
        bool is_name =
            endpoint.port != 0 && !is_numeric_address(view(endpoint.host));

        if (is_name ? !add_addresses_of(cf, endpoint, store.place, endpoints)
                    : !add_endpoint(cf, view(endpoint.host), endpoint.port,
                                    endpoints))
        {
            return false;
        }
    }

    use(*endpoints, settings);

    return true;
}

}  // namespace sl
