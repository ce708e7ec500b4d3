/*
 * TLS on a hiredis context.
 *
 * hiredis shakes hands, encrypts and decrypts; this sees to what it does not:
 * whether the certificate is that of the server that was to be reached, and an
 * error message that says what is wrong. Without hiredis's TLS library (see
 * ../../config) there is no TLS, and read_tls() says so.
 */

#pragma once

#include "redis/sl_redis_settings.h"

extern "C" {
#include <hiredis/async.h>
}

namespace sl {

/* What the configuration says about TLS. Strings are empty where it says
 * nothing. */
struct TlsOptions {
    /* The words by which it asks for TLS, for messages. */
    const char *wanted_by;

    /* Certificates that are trusted; empty: those that the system trusts. */
    ngx_str_t ca;

    /* This nginx's own certificate and its key. */
    ngx_str_t cert;
    ngx_str_t key;

    /* Whose certificate is expected; empty: that of the address that is
     * connected to. */
    ngx_str_t name;

    bool verify;

    bool at_least_1_3;
};

/*
 * Reads and checks the files. What is returned lives as long as the
 * configuration; nullptr, with a message, if something is wrong.
 */
const RedisTls *read_tls(ngx_conf_t *cf, const TlsOptions &options) noexcept;

/*
 * To be called on a context that begins to connect to `endpoint`, before it is
 * attached to the event loop. False if there is no hope: ac->c.errstr says why,
 * and the caller frees the context.
 */
bool start_tls(redisAsyncContext *ac, const RedisTls &tls,
               const RedisEndpoint &endpoint) noexcept;

bool has_tls(const redisAsyncContext *ac) noexcept;

/* Whether the handshake is not over yet. */
bool is_shaking_hands(const redisAsyncContext *ac) noexcept;

/* Whether there is input that has left the socket and waits in OpenSSL. */
bool has_decrypted_input(const redisAsyncContext *ac) noexcept;

/* The next byte of input, which stays there; false: there is none. */
bool peek_decrypted(const redisAsyncContext *ac, char *byte) noexcept;

}  // namespace sl
