#include "config/sl_config_login.h"

#include "config/sl_config_util.h"

namespace sl {

namespace {

constexpr size_t kLongestPasswordFile = 4096;

/* Takes the parameter, or else what the URL has, perhaps percent-encoded. */
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

    to->len = percent_decode(in_url, chars(to->data));

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

    std::string_view line = view(data, data + n);

    line = line.substr(0, line.find_first_of("\r\n"));

    if (line.empty() || static_cast<size_t>(n) == kLongestPasswordFile) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: password_file \"%V\" must have a "
                           "password in its first line, and less than %uz "
                           "bytes",
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

}  // namespace

bool set_login(ngx_conf_t *cf, const RedisUrl &url,
               const LoginParameters &given, RedisSettings *settings) noexcept
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

bool set_sentinel_login(ngx_conf_t *cf, const LoginParameters &given,
                        RedisSettings *settings) noexcept
{
    RedisLogin *login = &settings->sentinel_login;
    bool is_given = given.user.len != 0 || given.password.len != 0
                    || given.password_file.len != 0;

    if (is_given && settings->topology != Topology::kSentinel) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: sentinel_user=, sentinel_password= "
                           "and sentinel_password_file= need a URL that "
                           "starts with sentinel://, not \"%V\"",
                           &settings->name);
        return false;
    }

    if (given.password.len && given.password_file.len) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: sentinel_password= and "
                           "sentinel_password_file= are both given");
        return false;
    }

    login->user = given.user;
    login->password = given.password;

    return (given.password_file.len == 0
            || read_password_file(cf, given.password_file, &login->password))
           && has_password(cf, "sentinel_", *login);
}

}  // namespace sl
