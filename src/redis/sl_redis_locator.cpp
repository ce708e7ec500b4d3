#include "redis/sl_redis_locator.h"

#include <arpa/inet.h>

namespace sl {

namespace {

void fail(LocatorUser &user, Trouble trouble, ngx_str_t name, const char *why)
{
    u_char text[512];
    u_char *end = ngx_snprintf(text, sizeof(text), "\"%V\": %s", &name, why);

    user.not_located(trouble, view(text, end));
}

}  // namespace

NameLookup::NameLookup(const RedisSettings &settings) noexcept
    : settings_(settings), user_(nullptr), port_(0), ctx_(nullptr), turn_(0)
{}

NameLookup::~NameLookup()
{
    cancel();
}

void NameLookup::start(const RedisEndpoint &endpoint,
                       LocatorUser &user) noexcept
{
    cancel();

    if (endpoint.port == 0 || is_numeric_address(view(endpoint.host))) {
        user.located(endpoint);
        return;
    }

    if (settings_.resolver == nullptr) {
        fail(user, Trouble::kUnreachable, endpoint.host,
             "nginx needs a \"resolver\" in the http block to look it up");
        return;
    }

    ngx_resolver_ctx_t *ctx = ngx_resolve_start(settings_.resolver, nullptr);

    if (ctx == nullptr || ctx == NGX_NO_RESOLVER) {
        fail(user, Trouble::kLocal, endpoint.host,
             "no memory to look it up, or no name server");
        return;
    }

    user_ = &user;
    port_ = endpoint.port;
    ctx_ = ctx;

    ctx->name = endpoint.host;
    ctx->handler = on_resolved;
    ctx->data = this;
    ctx->timeout = settings_.connect_timeout;
    ctx->cancelable = 1;

    /* the user may have been told when this returns */
    if (ngx_resolve_name(ctx) != NGX_OK) {
        ctx_ = nullptr;
        fail(user, Trouble::kUnreachable, endpoint.host,
             "it cannot be looked up");
    }
}

void NameLookup::cancel() noexcept
{
    if (ctx_ != nullptr) {
        ngx_resolve_name_done(ctx_);
        ctx_ = nullptr;
    }
}

void NameLookup::on_resolved(ngx_resolver_ctx_t *ctx) noexcept
{
    static_cast<NameLookup *>(ctx->data)->resolved(ctx);
}

void NameLookup::resolved(ngx_resolver_ctx_t *ctx) noexcept
{
    /* the answer to a question that is not the last one */
    if (ctx != ctx_) {
        ngx_resolve_name_done(ctx);
        return;
    }

    ctx_ = nullptr;

    if (ctx->state != NGX_OK || ctx->naddrs == 0) {
        ngx_str_t name = ctx->name;
        const char *why = ngx_resolver_strerror(ctx->state);

        ngx_resolve_name_done(ctx);
        fail(*user_, Trouble::kUnreachable, name, why);
        return;
    }

    const ngx_resolver_addr_t &address = ctx->addrs[turn_++ % ctx->naddrs];
    u_char host[NGX_SOCKADDR_STRLEN + 1];
    size_t size = ngx_sock_ntop(address.sockaddr, address.socklen, host,
                                NGX_SOCKADDR_STRLEN, 0);

    host[size] = '\0';
    ngx_resolve_name_done(ctx);
    user_->located({{size, host}, port_});
}

bool is_numeric_address(std::string_view host) noexcept
{
    char text[INET6_ADDRSTRLEN];
    in6_addr address;

    if (host.size() >= sizeof(text)) {
        return false;
    }

    ngx_memcpy(text, host.data(), host.size());
    text[host.size()] = '\0';

    return inet_pton(AF_INET, text, &address) == 1
           || inet_pton(AF_INET6, text, &address) == 1;
}

}  // namespace sl
