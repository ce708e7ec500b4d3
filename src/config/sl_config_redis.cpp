#include "config/sl_config_redis.h"

#include <sys/un.h>

#include <cstddef>
#include <new>

#include "base/pure/sl_number.h"
#include "config/sl_config_tls.h"
#include "config/sl_config_util.h"
#include "redis/pure/sl_key.h"
#include "redis/pure/sl_redis_url.h"
#include "redis/sl_redis_store.h"

namespace sl {

namespace {

constexpr in_port_t kDefaultPort = 6379;
constexpr in_port_t kDefaultSentinelPort = 26379;
constexpr int64_t kMostConnections = 64;
constexpr ngx_msec_t kDefaultTimeout = 50;
constexpr ngx_msec_t kDefaultConnectTimeout = 200;
constexpr ngx_msec_t kLongestTimeout = 60000;
constexpr ngx_int_t kLargestDb = 2147483647;
constexpr size_t kLongestPasswordFile = 4096;

struct RedisParameters {
    ngx_str_t name;
    ngx_str_t timeout;
    ngx_str_t connect_timeout;
    ngx_str_t user;
    ngx_str_t password;
    ngx_str_t password_file;
    ngx_str_t sentinel_user;
    ngx_str_t sentinel_password;
    ngx_str_t sentinel_password_file;
    ngx_str_t db;
    ngx_str_t prefix;
    ngx_str_t connections;
    TlsParameters tls;
};

const Parameter kParameters[] = {
    {"name=", offsetof(RedisParameters, name)},
    {"timeout=", offsetof(RedisParameters, timeout)},
    {"connect_timeout=", offsetof(RedisParameters, connect_timeout)},
    {"user=", offsetof(RedisParameters, user)},
    {"password=", offsetof(RedisParameters, password)},
    {"password_file=", offsetof(RedisParameters, password_file)},
    {"sentinel_user=", offsetof(RedisParameters, sentinel_user)},
    {"sentinel_password=", offsetof(RedisParameters, sentinel_password)},
    {"sentinel_password_file=",
     offsetof(RedisParameters, sentinel_password_file)},
    {"db=", offsetof(RedisParameters, db)},
    {"prefix=", offsetof(RedisParameters, prefix)},
    {"connections=", offsetof(RedisParameters, connections)},
    {"tls=", offsetof(RedisParameters, tls.tls)},
    {"tls_ca=", offsetof(RedisParameters, tls.ca)},
    {"tls_cert=", offsetof(RedisParameters, tls.cert)},
    {"tls_key=", offsetof(RedisParameters, tls.key)},
    {"tls_name=", offsetof(RedisParameters, tls.name)},
    {"tls_verify=", offsetof(RedisParameters, tls.verify)},
    {"tls_min_version=", offsetof(RedisParameters, tls.min_version)},
};

/* Settings and the store that uses them, in one piece of the pool. */
struct Holder {
    RedisSettings settings;
    RedisStore store;

    Holder() noexcept : settings(), store(settings) {}
};

/* A NUL-terminated copy, for hiredis and open(). data is nullptr if no memory.
 */
ngx_str_t copy_text(ngx_conf_t *cf, std::string_view text)
{
    auto *data = static_cast<u_char *>(ngx_pnalloc(cf->pool, text.size() + 1));

    if (data == nullptr) {
        return ngx_null_string;
    }

    *ngx_cpymem(data, text.data(), text.size()) = '\0';

    return {text.size(), data};
}

/* The URL as log messages may show it: its password replaced. */
ngx_str_t without_password(ngx_conf_t *cf, const ngx_str_t &url)
{
    constexpr std::string_view kMask = "***";

    std::string_view text = view(url);
    std::string_view password = find_password(text);

    if (password.empty()) {
        return url;
    }

    auto before = static_cast<size_t>(password.data() - text.data());
    auto *data = static_cast<u_char *>(
        ngx_pnalloc(cf->pool, text.size() + kMask.size()));

    if (data == nullptr) {
        return ngx_null_string;
    }

    u_char *p = ngx_cpymem(data, text.data(), before);
    p = ngx_cpymem(p, kMask.data(), kMask.size());
    p = ngx_cpymem(p, text.data() + before + password.size(),
                   text.size() - before - password.size());

    return {static_cast<size_t>(p - data), data};
}

bool set_timeout(ngx_conf_t *cf, const char *name, ngx_str_t *text,
                 ngx_msec_t otherwise, ngx_msec_t *to)
{
    if (text->len == 0) {
        *to = otherwise;
        return true;
    }

    ngx_int_t ms = ngx_parse_time(text, 0);

    if (ms == NGX_ERROR || ms < 1
        || static_cast<ngx_msec_t>(ms) > kLongestTimeout) {
        refuse_value(cf, name, text, "a time from 1ms to 60s");
        return false;
    }

    *to = static_cast<ngx_msec_t>(ms);
    return true;
}

bool set_db(ngx_conf_t *cf, std::string_view in_url, const ngx_str_t &given,
            ngx_uint_t *to)
{
    ngx_str_t text = given.len ? given : str(in_url);

    if (text.len == 0) {
        *to = 0;
        return true;
    }

    ngx_int_t db = ngx_atoi(text.data, text.len);

    if (db == NGX_ERROR || db > kLargestDb) {
        refuse_value(cf, "db", &text, "a number from 0 to 2147483647");
        return false;
    }

    *to = static_cast<ngx_uint_t>(db);
    return true;
}

bool set_prefix(ngx_conf_t *cf, const ngx_str_t &given, ngx_str_t *to)
{
    *to = given.len ? given : str(kDefaultKeyPrefix);

    if (!is_key_prefix(view(*to))) {
        refuse_value(cf, "prefix", to,
                     "1 to 64 letters, digits, \"_\", \".\" or \"-\"; the "
                     "\":\" after it comes by itself");
        return false;
    }

    return true;
}

/* From the parameter, or else from the URL, where it may be percent-encoded. */
bool set_credential(ngx_conf_t *cf, const char *name,
                    const ngx_str_t *shown_url, std::string_view in_url,
                    const ngx_str_t &given, ngx_str_t *to)
{
    if (given.len || in_url.empty()) {
        *to = given;
        return true;
    }

    *to = copy_text(cf, in_url);

    if (to->data == nullptr) {
        return false;
    }

    to->len = percent_decode(in_url, reinterpret_cast<char *>(to->data));

    if (to->len == std::string_view::npos) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: the %s in the URL \"%V\" has a "
                           "\"%%\" that is not followed by two hex digits; "
                           "write \"%%\" itself as \"%%25\"",
                           name, shown_url);
        return false;
    }

    return true;
}

/* Reads the first line of a file that holds nothing but a password. */
bool read_password_file(ngx_conf_t *cf, ngx_str_t name, ngx_str_t *password)
{
    if (ngx_conf_full_name(cf->cycle, &name, 1) != NGX_OK) {
        return false;
    }

    ngx_fd_t fd = ngx_open_file(name.data, NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);

    if (fd == NGX_INVALID_FILE) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           "sliding_limit: cannot open password_file \"%V\"",
                           &name);
        return false;
    }

    auto *data =
        static_cast<u_char *>(ngx_pnalloc(cf->pool, kLongestPasswordFile));
    ssize_t n = data ? ngx_read_fd(fd, data, kLongestPasswordFile) : 0;
    ngx_err_t error = n < 0 ? ngx_errno : 0;

    ngx_close_file(fd);

    if (n < 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, error,
                           "sliding_limit: cannot read password_file \"%V\"",
                           &name);
        return false;
    }

    std::string_view line{reinterpret_cast<char *>(data),
                          static_cast<size_t>(n)};

    line = line.substr(0, line.find_first_of("\r\n"));

    if (line.empty() || static_cast<size_t>(n) == kLongestPasswordFile) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: password_file \"%V\" must hold a "
                           "password in its first line and less than %uz bytes",
                           &name, kLongestPasswordFile);
        return false;
    }

    *password = str(line);
    return true;
}

bool has_password(ngx_conf_t *cf, const char *prefix, const RedisLogin &login)
{
    if (login.user.len != 0 && login.password.len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: %suser \"%V\" has no password; add "
                           "%spassword= or %spassword_file=",
                           prefix, &login.user, prefix, prefix);
        return false;
    }

    return true;
}

bool set_credentials(ngx_conf_t *cf, const RedisUrl &url,
                     const RedisParameters &given, RedisSettings *settings)
{
    RedisLogin *login = &settings->login;

    if ((given.password.len != 0) + (given.password_file.len != 0)
            + !url.password.empty()
        > 1)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: more than one of password=, "
                           "password_file= and a password in the URL is given");
        return false;
    }

    if (given.user.len && !url.user.empty()) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: user= and a user in the URL are "
                           "both given");
        return false;
    }

    bool ok =
        set_credential(cf, "user", &settings->name, url.user, given.user,
                       &login->user)
        && (given.password_file.len
                ? read_password_file(cf, given.password_file, &login->password)
                : set_credential(cf, "password", &settings->name, url.password,
                                 given.password, &login->password));

    return ok && has_password(cf, "", *login);
}

bool set_sentinel_credentials(ngx_conf_t *cf, const RedisParameters &given,
                              RedisSettings *settings)
{
    RedisLogin *login = &settings->sentinel_login;
    bool is_given = given.sentinel_user.len != 0
                    || given.sentinel_password.len != 0
                    || given.sentinel_password_file.len != 0;

    if (is_given && settings->topology != Topology::kSentinel) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: sentinel_user=, sentinel_password= "
                           "and sentinel_password_file= need a URL that "
                           "starts with sentinel://, not \"%V\"",
                           &settings->name);
        return false;
    }

    if (given.sentinel_password.len && given.sentinel_password_file.len) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: sentinel_password= and "
                           "sentinel_password_file= are both given");
        return false;
    }

    login->user = given.sentinel_user;
    login->password = given.sentinel_password;

    return (given.sentinel_password_file.len == 0
            || read_password_file(cf, given.sentinel_password_file,
                                  &login->password))
           && has_password(cf, "sentinel_", *login);
}

bool set_connections(ngx_conf_t *cf, ngx_str_t *text, ngx_uint_t *to)
{
    int64_t number = text->len ? parse_count(view(*text)) : 1;

    if (number < 1 || number > kMostConnections) {
        refuse_value(cf, "connections", text, "a whole number from 1 to 64");
        return false;
    }

    *to = static_cast<ngx_uint_t>(number);
    return true;
}

bool set_socket(ngx_conf_t *cf, std::string_view path, RedisSettings *settings)
{
    ngx_str_t given = str(path);

    if (path[0] != '/' || path.size() >= sizeof(sockaddr_un::sun_path)) {
        refuse_value(cf, "socket path", &given,
                     "an absolute path shorter than 108 bytes");
        return false;
    }

    auto *endpoint = static_cast<RedisEndpoint *>(
        ngx_palloc(cf->pool, sizeof(RedisEndpoint)));

    if (endpoint == nullptr) {
        return false;
    }

    *endpoint = {copy_text(cf, path), 0};

    settings->endpoints = endpoint;
    settings->endpoint_count = 1;

    return endpoint->host.data != nullptr;
}

bool add_endpoint(ngx_conf_t *cf, std::string_view host, in_port_t port,
                  ngx_array_t *endpoints)
{
    auto *endpoint = static_cast<RedisEndpoint *>(ngx_array_push(endpoints));

    if (endpoint == nullptr) {
        return false;
    }

    /* an IPv6 address */
    if (host[0] == '[') {
        host = host.substr(1, host.size() - 2);
    }

    *endpoint = {copy_text(cf, host), port};

    return endpoint->host.data != nullptr;
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

/* One, or several with a ',' in between. */
bool set_addresses(ngx_conf_t *cf, const RedisUrl &url, RedisSettings *settings)
{
    ngx_array_t *endpoints =
        ngx_array_create(cf->pool, 1, sizeof(RedisEndpoint));
    std::string_view rest = url.addresses;
    in_port_t default_port = url.scheme == RedisScheme::kSentinel
                                 ? kDefaultSentinelPort
                                 : kDefaultPort;

    if (endpoints == nullptr) {
        return false;
    }

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

    settings->endpoints = static_cast<RedisEndpoint *>(endpoints->elts);
    settings->endpoint_count = endpoints->nelts;

    return true;
}

Topology topology_of(RedisScheme scheme)
{
    switch (scheme) {
    case RedisScheme::kSentinel:
        return Topology::kSentinel;
    case RedisScheme::kCluster:
        return Topology::kCluster;
    default:
        return Topology::kSingle;
    }
}

/* What limits call it with store=. */
bool set_name(ngx_conf_t *cf, const ngx_str_t &given, ngx_str_t *to)
{
    *to = given.len ? given : str(kDefaultStore);

    if (!is_zone_name(view(*to)) || view(*to) == kMemoryStore) {
        refuse_value(cf, "name", to,
                     "1 to 64 letters, digits, \"_\", \".\" or \"-\", and not "
                     "\"memory\"");
        return false;
    }

    return true;
}

bool read_settings(ngx_conf_t *cf, RedisSettings *settings, ngx_str_t *name)
{
    auto *args = static_cast<ngx_str_t *>(cf->args->elts);
    RedisParameters given{};

    settings->name = without_password(cf, args[1]);

    if (settings->name.data == nullptr
        || !read_parameters(cf, 2, kParameters, &given)
        || !set_name(cf, given.name, name))
    {
        return false;
    }

    RedisUrl url;
    const char *error = parse_redis_url(view(args[1]), &url);

    if (error != nullptr) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: invalid URL \"%V\": it %s",
                           &settings->name, error);
        return false;
    }

    if (given.db.len && !url.db.empty()) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: db= and a database in the URL "
                           "\"%V\" are both given",
                           &settings->name);
        return false;
    }

    if (given.db.len && url.scheme == RedisScheme::kCluster) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: db=%V is given, but a cluster has "
                           "only one database",
                           &given.db);
        return false;
    }

    settings->topology = topology_of(url.scheme);
    settings->primary = str(url.primary);

    return set_timeout(cf, "timeout", &given.timeout, kDefaultTimeout,
                       &settings->timeout)
           && set_timeout(cf, "connect_timeout", &given.connect_timeout,
                          kDefaultConnectTimeout, &settings->connect_timeout)
           && set_db(cf, url.db, given.db, &settings->db)
           && set_prefix(cf, given.prefix, &settings->prefix)
           && set_connections(cf, &given.connections, &settings->connections)
           && set_credentials(cf, url, given, settings)
           && set_sentinel_credentials(cf, given, settings)
           && (url.scheme == RedisScheme::kUnix
                   ? set_socket(cf, url.socket, settings)
                   : set_addresses(cf, url, settings))
           && set_tls(cf, given.tls, url.has_tls, settings);
}

}  // namespace

namespace {

/* All addresses of a name, now. */
bool add_addresses_of(ngx_conf_t *cf, const RedisEndpoint &name,
                      const Place &place, ngx_array_t *endpoints)
{
    ngx_url_t u;
    ngx_memzero(&u, sizeof(u));

    u.url = name.host;
    u.default_port = name.port;

    if (ngx_parse_url(cf->pool, &u) != NGX_OK || u.naddrs == 0) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "sliding_limit: %s in \"%V\" in %V:%ui, must be a host "
                      "that can be looked up now, or there must be a resolver "
                      "in the http block that will know it",
                      u.err ? u.err : "no address", &u.url, &place.file,
                      place.line);
        return false;
    }

    for (ngx_uint_t i = 0; i < u.naddrs; i++) {
        u_char text[NGX_SOCKADDR_STRLEN];
        size_t size = ngx_sock_ntop(u.addrs[i].sockaddr, u.addrs[i].socklen,
                                    text, sizeof(text), 0);

        if (!add_endpoint(cf, {reinterpret_cast<char *>(text), size}, name.port,
                          endpoints))
        {
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

bool look_up_redis(ngx_conf_t *cf, const NamedStore &store) noexcept
{
    RedisSettings *settings = store.settings;
    ngx_array_t *endpoints =
        ngx_array_create(cf->pool, 1, sizeof(RedisEndpoint));

    settings->resolver = find_resolver(cf);

    if (settings->resolver != nullptr) {
        return true;
    }

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

    settings->endpoints = static_cast<RedisEndpoint *>(endpoints->elts);
    settings->endpoint_count = endpoints->nelts;

    return true;
}

bool read_redis(ngx_conf_t *cf, NamedStore *to) noexcept
{
    void *memory = ngx_pcalloc(cf->pool, sizeof(Holder));

    if (memory == nullptr) {
        return false;
    }

    auto *holder = new (memory) Holder();

    to->store = &holder->store;
    to->settings = &holder->settings;
    to->place = place_of(cf);

    return read_settings(cf, &holder->settings, &to->name)
           && holder->store.share(cf, to->name);
}

}  // namespace sl
