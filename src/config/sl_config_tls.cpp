#include "config/sl_config_tls.h"

#include "base/pure/sl_words.h"
#include "config/sl_config_util.h"
#include "redis/sl_redis_locator.h"
#include "redis/sl_redis_tls.h"

namespace sl {

namespace {

/* The longest name that a certificate can have. */
constexpr size_t kLongestName = 253;

bool set_switch(ngx_conf_t *cf, const char *name, const ngx_str_t &text,
                bool *to)
{
    if (text.len == 0) {
        return true;
    }

    *to = view(text) == "on";

    return *to || view(text) == "off"
           || refuse_value(cf, name, text, "\"on\" or \"off\"");
}

bool set_min_version(ngx_conf_t *cf, const ngx_str_t &text, bool *at_least_1_3)
{
    *at_least_1_3 = view(text) == "1.3";

    return text.len == 0 || *at_least_1_3 || view(text) == "1.2"
           || refuse_value(cf, "tls_min_version", text, "\"1.2\" or \"1.3\"");
}

bool is_host_name(std::string_view text)
{
    for (char ch : text) {
        if (!is_letter_or_digit(ch) && ch != '.' && ch != '-' && ch != '_') {
            return false;
        }
    }

    return text.size() <= kLongestName;
}

/* A single server is called what the URL calls it; of several servers only the
 * addresses are known. */
bool set_expected_name(ngx_conf_t *cf, const ngx_str_t &given,
                       const RedisSettings &settings, ngx_str_t *to)
{
    const ngx_str_t &host = settings.endpoints[0].host;

    if (given.len == 0) {
        *to = settings.topology == Topology::kSingle ? host
                                                     : ngx_str_t{0, nullptr};
        return true;
    }

    if (!is_host_name(view(given)) && !is_numeric_address(view(given))) {
        return refuse_value(cf, "tls_name", given, "a host name or an address");
    }

    *to = given;
    return true;
}

bool has_certificate_and_key(ngx_conf_t *cf, const TlsParameters &given)
{
    if ((given.cert.len == 0) != (given.key.len == 0)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: %s is given, but %s is not; a "
                           "certificate and its key belong together",
                           given.cert.len ? "tls_cert=" : "tls_key=",
                           given.cert.len ? "tls_key=" : "tls_cert=");
        return false;
    }

    return true;
}

/* A message is better than a connection that is wrongly taken for encrypted. */
bool has_none(ngx_conf_t *cf, const TlsParameters &given,
              const RedisSettings &settings)
{
    const GivenParameter all[] = {
        {"tls_ca=", given.ca},         {"tls_cert=", given.cert},
        {"tls_key=", given.key},       {"tls_name=", given.name},
        {"tls_verify=", given.verify}, {"tls_min_version=", given.min_version},
    };

    for (const GivenParameter &parameter : all) {
        if (parameter.value.len != 0) {
            ngx_str_t name = str(parameter.name);

            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "sliding_limit: %V is given, but \"%V\" does "
                               "not use TLS; add tls=on, or write rediss:// "
                               "instead of redis://",
                               &name, &settings.name);
            return false;
        }
    }

    return true;
}

}  // namespace

bool set_tls(ngx_conf_t *cf, const TlsParameters &given, bool url_has_tls,
             RedisSettings *settings) noexcept
{
    bool is_on = url_has_tls;

    if (!set_switch(cf, "tls", given.tls, &is_on)) {
        return false;
    }

    if (url_has_tls && !is_on) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: tls=off is given, but \"%V\" means "
                           "TLS; write redis:// for a connection without TLS",
                           &settings->name);
        return false;
    }

    if (!is_on) {
        return has_none(cf, given, *settings);
    }

    if (settings->endpoints[0].port == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: tls=on is given, but a unix socket "
                           "like \"%V\" cannot use TLS",
                           &settings->name);
        return false;
    }

    TlsOptions options{};

    options.wanted_by = url_has_tls ? "rediss://" : "tls=on";
    options.ca = given.ca;
    options.cert = given.cert;
    options.key = given.key;
    options.verify = true;

    if (!set_switch(cf, "tls_verify", given.verify, &options.verify)
        || !set_min_version(cf, given.min_version, &options.at_least_1_3)
        || !set_expected_name(cf, given.name, *settings, &options.name)
        || !has_certificate_and_key(cf, given))
    {
        return false;
    }

    settings->tls = read_tls(cf, options);

    return settings->tls != nullptr;
}

}  // namespace sl
