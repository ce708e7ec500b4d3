/* Reads the tls parameters of a `sliding_limit_redis` line. */

#pragma once

#include "redis/sl_redis_settings.h"

namespace sl {

/* As they are given; empty: they are not. */
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
 * Sets settings->tls if the URL or they ask for it. The rest of the settings
 * is there. False, with a message, if it cannot be.
 */
bool set_tls(ngx_conf_t *cf, const TlsParameters &given, bool url_has_tls,
             RedisSettings *settings) noexcept;

}  // namespace sl
