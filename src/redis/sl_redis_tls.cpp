#include "redis/sl_redis_tls.h"

#include "redis/sl_redis_locator.h"

#if (SL_HAVE_TLS)

extern "C" {
#include <hiredis/hiredis_ssl.h>
}

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <cstdarg>
#include <new>

namespace sl {

struct RedisTls {
    SSL_CTX *ctx;
    ngx_str_t name;
};

namespace {

/* ---- configuration ---- */

void free_ctx(void *ctx) noexcept
{
    SSL_CTX_free(static_cast<SSL_CTX *>(ctx));
}

/* Without this OpenSSL would ask whoever sits at the terminal. */
int no_passphrase(char *, int, int, void *) noexcept
{
    return 0;
}

/*
 * The first error of OpenSSL's list is the one that matters: the others say
 * only that what it kept from working did not work.
 */
const char *openssl_reason(unsigned long error)
{
    const char *reason = error ? ERR_reason_error_string(error) : nullptr;

    return reason != nullptr ? reason : "unknown error";
}

bool refuse_file(ngx_conf_t *cf, const char *what, const ngx_str_t &file)
{
    ngx_str_t name = file;

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "sliding_limit: cannot use %s \"%V\": %s", what, &name,
                       openssl_reason(ERR_peek_error()));
    ERR_clear_error();

    return false;
}

/* `file` becomes its full name. OpenSSL's words for a file that is missing are
 * not as clear as the system's. */
bool find_file(ngx_conf_t *cf, const char *what, ngx_str_t *file)
{
    if (ngx_conf_full_name(cf->cycle, file, 1) != NGX_OK) {
        return false;
    }

    ngx_fd_t fd = ngx_open_file(file->data, NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);
    ngx_file_info_t info;

    if (fd == NGX_INVALID_FILE || ngx_fd_info(fd, &info) == NGX_FILE_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           "sliding_limit: cannot open %s \"%V\"", what, file);

        if (fd != NGX_INVALID_FILE) {
            ngx_close_file(fd);
        }

        return false;
    }

    ngx_close_file(fd);

    if (!ngx_is_file(&info)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: cannot use %s \"%V\": it is not a "
                           "file",
                           what, file);
        return false;
    }

    return true;
}

/*
 * Whether one of the trusted certificates can have signed a server's, or is a
 * server's own: to trust others has no effect.
 */
bool has_ca(SSL_CTX *ctx)
{
    STACK_OF(X509_OBJECT) *all =
        X509_STORE_get0_objects(SSL_CTX_get_cert_store(ctx));

    for (int i = 0; i < sk_X509_OBJECT_num(all); i++) {
        X509 *x = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(all, i));

        if (x != nullptr
            && (X509_check_ca(x) != 0
                || (X509_get_extension_flags(x) & EXFLAG_SS)))
        {
            return true;
        }
    }

    return false;
}

bool set_ca(ngx_conf_t *cf, SSL_CTX *ctx, ngx_str_t file)
{
    if (file.len == 0) {
        if (SSL_CTX_set_default_verify_paths(ctx) != 1) {
            return refuse_file(cf, "the certificates of", ngx_string("system"));
        }

        return true;
    }

    if (!find_file(cf, "tls_ca", &file)) {
        return false;
    }

    if (SSL_CTX_load_verify_locations(ctx, chars(file.data), nullptr) != 1) {
        return refuse_file(cf, "tls_ca", file);
    }

    if (!has_ca(ctx)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: cannot use tls_ca \"%V\": it has "
                           "no certificate of a CA",
                           &file);
        return false;
    }

    return true;
}

bool set_own_certificate(ngx_conf_t *cf, SSL_CTX *ctx, ngx_str_t cert,
                         ngx_str_t key)
{
    if (cert.len == 0) {
        return true;
    }

    if (!find_file(cf, "tls_cert", &cert) || !find_file(cf, "tls_key", &key)) {
        return false;
    }

    if (SSL_CTX_use_certificate_chain_file(ctx, chars(cert.data)) != 1) {
        return refuse_file(cf, "tls_cert", cert);
    }

    /* also checks that the two belong together */
    if (SSL_CTX_use_PrivateKey_file(ctx, chars(key.data), SSL_FILETYPE_PEM)
        != 1) {
        return refuse_file(cf, "tls_key", key);
    }

    return true;
}

SSL_CTX *create_ctx(ngx_conf_t *cf)
{
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(cf->pool, 0);
    SSL_CTX *ctx =
        cleanup != nullptr ? SSL_CTX_new(TLS_client_method()) : nullptr;

    if (ctx == nullptr) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: OpenSSL does not start: %s",
                           openssl_reason(ERR_peek_error()));
        ERR_clear_error();
        return nullptr;
    }

    cleanup->handler = free_ctx;
    cleanup->data = ctx;

    return ctx;
}

/* ---- connections ---- */

/* What is known of a context with TLS; its `privdata` points here. */
struct TlsSession {
    /* Belongs to hiredis, and lives as long as the context. */
    SSL *ssl;

    /* Whose certificate is expected. */
    char name[256];
};

TlsSession *session_of(const redisContext *c)
{
    return static_cast<TlsSession *>(c->privdata);
}

void free_session(void *session) noexcept
{
    delete static_cast<TlsSession *>(session);
}

/* Whether the error is what comes of speaking TLS to a server that does not. */
bool is_like_plain_text(unsigned long error)
{
    switch (ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0) {
    case SSL_R_WRONG_VERSION_NUMBER:
#ifdef SSL_R_PACKET_LENGTH_TOO_LONG
    case SSL_R_PACKET_LENGTH_TOO_LONG:
#endif
    case SSL_R_HTTP_REQUEST:
        return true;
    default:
        return false;
    }
}

void set_error(redisContext *c, const char *format, ...)
{
    u_char *text = bytes(c->errstr);
    va_list args;

    va_start(args, format);
    *ngx_vslprintf(text, text + sizeof(c->errstr) - 1, format, args) = '\0';
    va_end(args);
}

void explain_verdict(redisContext *c, long verdict)
{
    bool is_of_another = verdict == X509_V_ERR_HOSTNAME_MISMATCH
                         || verdict == X509_V_ERR_IP_ADDRESS_MISMATCH;

    set_error(c, "TLS: its certificate is not accepted: %s%s%s",
              X509_verify_cert_error_string(verdict),
              is_of_another ? ", it is not for " : "",
              is_of_another ? session_of(c)->name : "");
}

/*
 * hiredis has set an error from errno, which says little of what OpenSSL found
 * wrong. To be called right after the failure, as only then OpenSSL knows.
 */
void explain(redisContext *c)
{
    SSL *ssl = session_of(c)->ssl;
    ngx_err_t system_error = ngx_errno;

    /* a server that hangs up on us has perhaps said why before */
    if (system_error == ECONNRESET || system_error == EPIPE) {
        char byte;

        ERR_clear_error();
        SSL_peek(ssl, &byte, 1);
    }

    unsigned long error = ERR_peek_error();
    const char *reason = error ? ERR_reason_error_string(error) : nullptr;
    bool is_handshake = !SSL_is_init_finished(ssl);
    bool is_verified = SSL_get_verify_mode(ssl) != SSL_VERIFY_NONE;

    if (is_handshake && is_verified && SSL_get_verify_result(ssl) != X509_V_OK)
    {
        explain_verdict(c, SSL_get_verify_result(ssl));

    } else if (reason != nullptr) {
        set_error(c, "TLS: %s%s", reason,
                  is_handshake && is_like_plain_text(error)
                      ? "; does it speak TLS at this port?"
                      : "");

    } else if (c->err != REDIS_ERR_EOF && system_error != 0) {
        set_error(c, "%s", strerror(system_error));

    } else if (is_handshake) {
        set_error(c, "TLS: it closed the connection during the handshake; does "
                     "it speak TLS at this port?");
    }
}

/* The functions of hiredis in whose place others stand. */
const redisContextFuncs *hiredis_functions;

/*
 * OpenSSL has one list of errors for all. One that others have left there would
 * be taken for an error of this connection, and nginx would complain of one
 * that this connection leaves.
 */
template <typename Function>
ssize_t call_openssl(redisContext *c, Function function)
{
    ERR_clear_error();
    errno = 0;

    ssize_t n = function();

    if (n < 0) {
        explain(c);
        ERR_clear_error();
    }

    return n;
}

ssize_t read_decrypted(redisContext *c, char *to, size_t size) noexcept
{
    return call_openssl(c,
                        [=] { return hiredis_functions->read(c, to, size); });
}

ssize_t write_encrypted(redisContext *c) noexcept
{
    return call_openssl(c, [=] { return hiredis_functions->write(c); });
}

void replace_functions(redisContext *c)
{
    static const redisContextFuncs explaining = [c] {
        hiredis_functions = c->funcs;

        redisContextFuncs functions = *hiredis_functions;
        functions.read = read_decrypted;
        functions.write = write_encrypted;
        return functions;
    }();

    c->funcs = &explaining;
}

/* Says whose certificate the server must have. */
bool expect(TlsSession *session, const RedisTls &tls,
            const RedisEndpoint &endpoint)
{
    const ngx_str_t &name = tls.name.len ? tls.name : endpoint.host;
    SSL *ssl = session->ssl;

    ngx_cpystrn(bytes(session->name), name.data,
                ngx_min(name.len + 1, sizeof(session->name)));

    if (is_numeric_address(session->name)) {
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), session->name)
               == 1;
    }

    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);

    return SSL_set1_host(ssl, session->name) == 1
           && SSL_set_tlsext_host_name(ssl, session->name) == 1;
}

bool fail(redisAsyncContext *ac, const char *reason)
{
    ERR_clear_error();
    set_error(&ac->c, "%s", reason);

    return false;
}

}  // namespace

const RedisTls *read_tls(ngx_conf_t *cf, const TlsOptions &options) noexcept
{
    auto *tls =
        static_cast<RedisTls *>(ngx_pcalloc(cf->pool, sizeof(RedisTls)));

    ERR_clear_error();

    SSL_CTX *ctx = tls != nullptr ? create_ctx(cf) : nullptr;

    if (ctx == nullptr) {
        return nullptr;
    }

    tls->ctx = ctx;
    tls->name = options.name;

    SSL_CTX_set_min_proto_version(ctx, options.at_least_1_3 ? TLS1_3_VERSION
                                                            : TLS1_2_VERSION);
    SSL_CTX_set_verify(ctx, options.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE,
                       nullptr);
    SSL_CTX_set_default_passwd_cb(ctx, no_passphrase);

    /* a reply says itself how long it is: a server that is gone without a
     * word is no worse than one that says goodbye */
#ifdef SSL_OP_IGNORE_UNEXPECTED_EOF
    SSL_CTX_set_options(ctx, SSL_OP_IGNORE_UNEXPECTED_EOF);
#endif
#ifdef SSL_OP_NO_RENEGOTIATION
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION);
#endif

    bool ok = set_ca(cf, ctx, options.ca)
              && set_own_certificate(cf, ctx, options.cert, options.key);

    ERR_clear_error();

    return ok ? tls : nullptr;
}

bool start_tls(redisAsyncContext *ac, const RedisTls &tls,
               const RedisEndpoint &endpoint) noexcept
{
    auto *session = new (std::nothrow) TlsSession();

    if (session == nullptr) {
        return fail(ac, "out of memory");
    }

    ac->c.privdata = session;
    ac->c.free_privdata = free_session;

    session->ssl = SSL_new(tls.ctx);

    if (session->ssl == nullptr || !expect(session, tls, endpoint)) {
        SSL_free(session->ssl);
        return fail(ac, "out of memory");
    }

    errno = 0;

    /* sends the first message, or finds that it is too early for that */
    if (redisInitiateSSL(&ac->c, session->ssl) != REDIS_OK) {
        explain(&ac->c);
        ERR_clear_error();
        SSL_free(session->ssl);
        return false;
    }

    replace_functions(&ac->c);

    return true;
}

bool has_tls(const redisAsyncContext *ac) noexcept
{
    return session_of(&ac->c) != nullptr;
}

bool is_shaking_hands(const redisAsyncContext *ac) noexcept
{
    return has_tls(ac) && !SSL_is_init_finished(session_of(&ac->c)->ssl);
}

bool has_decrypted_input(const redisAsyncContext *ac) noexcept
{
    return has_tls(ac) && SSL_pending(session_of(&ac->c)->ssl) > 0;
}

bool peek_decrypted(const redisAsyncContext *ac, char *byte) noexcept
{
    ERR_clear_error();

    int n = SSL_peek(session_of(&ac->c)->ssl, byte, 1);

    ERR_clear_error();

    return n == 1;
}

}  // namespace sl

#else /* !SL_HAVE_TLS */

namespace sl {

const RedisTls *read_tls(ngx_conf_t *cf, const TlsOptions &options) noexcept
{
    ngx_conf_log_error(
        NGX_LOG_EMERG, cf, 0,
        "sliding_limit: %s needs hiredis 1.0 or later with TLS; "
        "this module was built with hiredis %d.%d.%d%s",
        options.wanted_by, HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH,
        HIREDIS_MAJOR > 0 ? ", without its library for TLS" : "");

    return nullptr;
}

bool start_tls(redisAsyncContext *, const RedisTls &,
               const RedisEndpoint &) noexcept
{
    return false;
}

bool has_tls(const redisAsyncContext *) noexcept
{
    return false;
}

bool is_shaking_hands(const redisAsyncContext *) noexcept
{
    return false;
}

bool has_decrypted_input(const redisAsyncContext *) noexcept
{
    return false;
}

bool peek_decrypted(const redisAsyncContext *, char *) noexcept
{
    return false;
}

}  // namespace sl

#endif
