#include "sl_config_redis.h"

#include <sys/un.h>

#include <cstddef>
#include <new>

#include "core/sl_key.h"
#include "core/sl_redis_url.h"
#include "redis/sl_redis_store.h"
#include "sl_config_util.h"

namespace sl {

namespace {

constexpr in_port_t kDefaultPort = 6379;
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
    ngx_str_t db;
};

const Parameter kParameters[] = {
    {"name=", offsetof(RedisParameters, name)},
    {"timeout=", offsetof(RedisParameters, timeout)},
    {"connect_timeout=", offsetof(RedisParameters, connect_timeout)},
    {"user=", offsetof(RedisParameters, user)},
    {"password=", offsetof(RedisParameters, password)},
    {"password_file=", offsetof(RedisParameters, password_file)},
    {"db=", offsetof(RedisParameters, db)},
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

bool set_credentials(ngx_conf_t *cf, const RedisUrl &url,
                     const RedisParameters &given, RedisSettings *settings)
{
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
                       &settings->user)
        && (given.password_file.len
                ? read_password_file(cf, given.password_file,
                                     &settings->password)
                : set_credential(cf, "password", &settings->name, url.password,
                                 given.password, &settings->password));

    if (ok && settings->user.len && settings->password.len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: user \"%V\" has no password; add "
                           "password= or password_file=",
                           &settings->user);
        return false;
    }

    return ok;
}

bool set_socket(ngx_conf_t *cf, std::string_view path, RedisSettings *settings)
{
    ngx_str_t given = str(path);

    if (path[0] != '/' || path.size() >= sizeof(sockaddr_un::sun_path)) {
        refuse_value(cf, "socket path", &given,
                     "an absolute path shorter than 108 bytes");
        return false;
    }

    auto *host =
        static_cast<ngx_str_t *>(ngx_palloc(cf->pool, sizeof(ngx_str_t)));

    if (host == nullptr) {
        return false;
    }

    *host = copy_text(cf, path);

    settings->is_socket = true;
    settings->hosts = host;
    settings->host_count = 1;

    return host->data != nullptr;
}

/*
 * Resolves the host now: a worker must never wait for a name server, and
 * hiredis would make it, so all it is ever given are numbers.
 */
bool set_address(ngx_conf_t *cf, std::string_view address,
                 RedisSettings *settings)
{
    ngx_url_t u;
    ngx_memzero(&u, sizeof(u));

    u.url = str(address);
    u.default_port = kDefaultPort;

    /* nginx would take "unix:name" for a socket */
    if (ngx_parse_url(cf->pool, &u) != NGX_OK || u.naddrs == 0
        || u.family == AF_UNIX)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: %s in \"%V\", must be host or "
                           "host:port with a port from 1 to 65535",
                           u.err ? u.err : "no address", &u.url);
        return false;
    }

    auto *hosts = static_cast<ngx_str_t *>(
        ngx_pcalloc(cf->pool, u.naddrs * sizeof(ngx_str_t)));

    if (hosts == nullptr) {
        return false;
    }

    for (ngx_uint_t i = 0; i < u.naddrs; i++) {
        u_char text[NGX_SOCKADDR_STRLEN];
        size_t size = ngx_sock_ntop(u.addrs[i].sockaddr, u.addrs[i].socklen,
                                    text, sizeof(text), 0);

        hosts[i] = copy_text(cf, {reinterpret_cast<char *>(text), size});

        if (hosts[i].data == nullptr) {
            return false;
        }
    }

    settings->hosts = hosts;
    settings->host_count = u.naddrs;
    settings->port = u.port ? u.port : kDefaultPort;

    return true;
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

    return set_timeout(cf, "timeout", &given.timeout, kDefaultTimeout,
                       &settings->timeout)
           && set_timeout(cf, "connect_timeout", &given.connect_timeout,
                          kDefaultConnectTimeout, &settings->connect_timeout)
           && set_db(cf, url.db, given.db, &settings->db)
           && set_credentials(cf, url, given, settings)
           && (url.address.empty() ? set_socket(cf, url.socket, settings)
                                   : set_address(cf, url.address, settings));
}

}  // namespace

bool read_redis(ngx_conf_t *cf, NamedStore *to) noexcept
{
    void *memory = ngx_pcalloc(cf->pool, sizeof(Holder));

    if (memory == nullptr) {
        return false;
    }

    auto *holder = new (memory) Holder();

    to->store = &holder->store;
    to->place = place_of(cf);

    return read_settings(cf, &holder->settings, &to->name)
           && holder->store.share(cf, to->name);
}

}  // namespace sl
