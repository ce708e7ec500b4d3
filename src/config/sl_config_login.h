/*
 * Reads users and passwords of a `sliding_limit_redis` line, which stand in its
 * parameters, in its URL or in files.
 */

#pragma once

#include "redis/pure/sl_redis_url.h"
#include "redis/sl_redis_settings.h"

namespace sl {

/* The parameters as they are given; those that are not are empty. */
struct LoginParameters {
    ngx_str_t user;
    ngx_str_t password;
    ngx_str_t password_file;
};

/* Sets how to log in to Redis. False, with a message, if the parameters and the
 * URL contradict each other, or a file cannot be read. */
bool set_login(ngx_conf_t *cf, const RedisUrl &url,
               const LoginParameters &given, RedisSettings *settings) noexcept;

/* Does the same for Sentinels, which have passwords of their own. */
bool set_sentinel_login(ngx_conf_t *cf, const LoginParameters &given,
                        RedisSettings *settings) noexcept;

}  // namespace sl
