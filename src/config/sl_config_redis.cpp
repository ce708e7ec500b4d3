#include "config/sl_config_redis.h"

#include <cstddef>
#include <cstdint>
#include <new>

#include "config/sl_config_addresses.h"
#include "config/sl_config_login.h"
#include "config/sl_config_tls.h"
#include "config/sl_config_util.h"
#include "redis/pure/sl_key.h"
#include "redis/pure/sl_redis_url.h"
#include "redis/sl_redis_store.h"

namespace sl {

namespace {

constexpr int64_t kLargestDb = INT32_MAX;
constexpr int64_t kMostConnections = 64;
constexpr ngx_msec_t kDefaultTimeout = 50;
constexpr ngx_msec_t kDefaultConnectTimeout = 200;
constexpr ngx_msec_t kLongestTimeout = 60000;

/* The parameters of one line as they are given; those that are not are empty.
 */
struct RedisParameters {
    ngx_str_t name;
    ngx_str_t timeout;
    ngx_str_t connect_timeout;
    LoginParameters login;
    LoginParameters sentinel_login;
    ngx_str_t db;
    ngx_str_t prefix;
    ngx_str_t connections;
    TlsParameters tls;
};

const Parameter kParameters[] = {
    {"name=", offsetof(RedisParameters, name)},
    {"timeout=", offsetof(RedisParameters, timeout)},
    {"connect_timeout=", offsetof(RedisParameters, connect_timeout)},
    {"user=", offsetof(RedisParameters, login.user)},
    {"password=", offsetof(RedisParameters, login.password)},
    {"password_file=", offsetof(RedisParameters, login.password_file)},
    {"sentinel_user=", offsetof(RedisParameters, sentinel_login.user)},
    {"sentinel_password=", offsetof(RedisParameters, sentinel_login.password)},
    {"sentinel_password_file=",
     offsetof(RedisParameters, sentinel_login.password_file)},
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

bool set_timeout(ngx_conf_t *cf, const char *name, const ngx_str_t &text,
                 ngx_msec_t otherwise, ngx_msec_t *to)
{
    *to = otherwise;

    return text.len == 0
           || read_time(cf, name, text, {1, kLongestTimeout},
                        "a time from 1ms to 60s", to);
}

bool set_db(ngx_conf_t *cf, const RedisUrl &url, const ngx_str_t &given,
            RedisSettings *settings)
{
    if (given.len && !url.db.empty()) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: db= and a database in the URL "
                           "\"%V\" are both given",
                           &settings->name);
        return false;
    }

    if (given.len && url.scheme == RedisScheme::kCluster) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: db=%V is given, but a cluster has "
                           "only one database",
                           &given);
        return false;
    }

    ngx_str_t text = given.len ? given : str(url.db);

    settings->db = 0;

    return text.len == 0
           || read_number(cf, "db", text, {0, kLargestDb},
                          "a number from 0 to 2147483647", &settings->db);
}

bool set_prefix(ngx_conf_t *cf, const ngx_str_t &given, ngx_str_t *to)
{
    *to = given.len ? given : str(kDefaultKeyPrefix);

    return is_key_prefix(view(*to))
           || refuse_value(cf, "prefix", *to,
                           "1 to 64 letters, digits, \"_\", \".\" or \"-\"; "
                           "the \":\" that follows it is added automatically");
}

bool set_connections(ngx_conf_t *cf, const ngx_str_t &text, ngx_uint_t *to)
{
    *to = 1;

    return text.len == 0
           || read_number(cf, "connections", text, {1, kMostConnections},
                          "a whole number from 1 to 64", to);
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

/* Sets the name that limits refer to with store=. */
bool set_name(ngx_conf_t *cf, const ngx_str_t &given, ngx_str_t *to)
{
    *to = given.len ? given : str(kDefaultStore);

    return (is_zone_name(view(*to)) && view(*to) != kMemoryStore)
           || refuse_value(cf, "name", *to,
                           "1 to 64 letters, digits, \"_\", \".\" or \"-\", "
                           "and not \"memory\"");
}

bool read_url(ngx_conf_t *cf, const ngx_str_t &text, RedisSettings *settings,
              RedisUrl *url)
{
    const char *error = parse_redis_url(view(text), url);

    if (error != nullptr) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: invalid URL \"%V\": it %s",
                           &settings->name, error);
        return false;
    }

    settings->topology = topology_of(url->scheme);
    settings->primary = str(url->primary);

    return true;
}

bool read_settings(ngx_conf_t *cf, RedisSettings *settings, ngx_str_t *name)
{
    const ngx_str_t &first = words_of(cf)[1];
    RedisParameters given{};
    RedisUrl url;

    settings->name = without_password(cf, first);

    return settings->name.data != nullptr
           && read_parameters(cf, 2, kParameters, &given)
           && set_name(cf, given.name, name)
           && read_url(cf, first, settings, &url)
           && set_timeout(cf, "timeout", given.timeout, kDefaultTimeout,
                          &settings->timeout)
           && set_timeout(cf, "connect_timeout", given.connect_timeout,
                          kDefaultConnectTimeout, &settings->connect_timeout)
           && set_db(cf, url, given.db, settings)
           && set_prefix(cf, given.prefix, &settings->prefix)
           && set_connections(cf, given.connections, &settings->connections)
           && set_login(cf, url, given.login, settings)
           && set_sentinel_login(cf, given.sentinel_login, settings)
           && set_addresses(cf, url, settings)
           && set_tls(cf, given.tls, url.has_tls, settings);
}

/*
 * Creates the store that the line describes; it lives as long as the
 * configuration. False, with a message, if the line is not right.
 */
bool read_redis(ngx_conf_t *cf, NamedStore *to)
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

}  // namespace

const NamedStore *find_store(const MainConf &mcf,
                             std::string_view name) noexcept
{
    for (const NamedStore &store : elements<const NamedStore>(mcf.stores)) {
        if (view(store.name) == name) {
            return &store;
        }
    }

    return nullptr;
}

bool set_redis(ngx_conf_t *cf, MainConf *mcf) noexcept
{
    NamedStore store{};

    if (!read_redis(cf, &store)) {
        return false;
    }

    const NamedStore *other = find_store(*mcf, view(store.name));

    if (other != nullptr) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: there is already a redis named "
                           "\"%V\" in %V:%ui; give this one another name=, "
                           "which limits refer to with store=",
                           &store.name, &other->place.file, other->place.line);
        return false;
    }

    auto *added = static_cast<NamedStore *>(ngx_array_push(&mcf->stores));

    if (added == nullptr) {
        return false;
    }

    *added = store;

    return true;
}

}  // namespace sl
