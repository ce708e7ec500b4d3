#include "config/sl_config_login.h"

#include <new>

#include "config/sl_config_util.h"

namespace sl {

namespace {

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

/* Reads the password, and makes the file's name a whole path. */
bool read_password_file(ngx_conf_t *cf, ngx_str_t *name, ngx_str_t *password)
{
    PasswordFile file;

    if (ngx_conf_full_name(cf->cycle, name, 1) != NGX_OK) {
        return false;
    }

    if (!file.load(*name)) {
        u_char text[NGX_MAX_CONF_ERRSTR];
        ngx_str_t what = str(
            view(text, ngx_snprintf(text, sizeof(text), file.fault(), name)));

        ngx_conf_log_error(NGX_LOG_EMERG, cf, file.error(), "sliding_limit: %V",
                           &what);
        return false;
    }

    *password = copy_text(cf, file.password());

    return password->data != nullptr;
}

/* Lets the login have a password, unless it is empty. `file` is where it is
 * from; empty: from the configuration. */
bool set_password(ngx_conf_t *cf, const ngx_str_t &password,
                  const ngx_str_t &file, RedisLogin *login)
{
    if (password.len == 0) {
        return true;
    }

    void *memory = ngx_palloc(cf->pool, sizeof(RedisPassword));

    if (memory == nullptr) {
        return false;
    }

    login->password = new (memory) RedisPassword(password, file);

    return true;
}

bool has_password(ngx_conf_t *cf, const char *prefix, const RedisLogin &login)
{
    if (login.user.len != 0 && login.password == nullptr) {
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

    ngx_str_t file = given.password_file;
    ngx_str_t password;

    bool ok =
        set_credential(cf, "user", &settings->name, url.user, given.user,
                       &login->user)
        && (file.len ? read_password_file(cf, &file, &password)
                     : set_credential(cf, "password", &settings->name,
                                      url.password, given.password, &password));

    return ok && set_password(cf, password, file, login)
           && has_password(cf, "", *login);
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

    ngx_str_t file = given.password_file;
    ngx_str_t password = given.password;

    login->user = given.user;

    return (file.len == 0 || read_password_file(cf, &file, &password))
           && set_password(cf, password, file, login)
           && has_password(cf, "sentinel_", *login);
}

}  // namespace sl
