/* Reads the tls parameters of a `sliding_limit_redis` line. */

#pragma once

#include "redis/sl_redis_settings.h"

namespace sl {

/* The parameters as they are given; those that are not are empty. */
struct TlsParameters {
    ngx_str_t tls;
    ngx_str_t ca;
    ngx_str_t cert;
    ngx_str_t key;
    ngx_str_t name;
    ngx_str_t verify;
    ngx_str_t min_version;
};

/*
 * Sets settings->tls if the URL or the parameters ask for TLS. The rest of the
 * settings must be there. False, with a message, if that is not possible.
 */
bool set_tls(ngx_conf_t *cf, const TlsParameters &given, bool url_has_tls,
             RedisSettings *settings) noexcept;

}  // namespace sl
