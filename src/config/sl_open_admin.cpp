#include "config/sl_open_admin.h"

#include <algorithm>
#include <iterator>

namespace sl {

namespace {

/*
 * A module of nginx's own that has a handler in the access phase. What its
 * settings look like is its own affair, but in all versions of nginx they begin
 * with words, pointers or sizes, that tell whether there is a rule in the
 * location or above it.
 */
struct AccessModule {
    std::string_view name;
    bool (*has_rule)(const uintptr_t *words);
};

/* The first words are an array each for IPv4, IPv6 and Unix sockets. */
bool has_addresses(const uintptr_t *words)
{
    constexpr size_t kArrays = 1
#if (NGX_HAVE_INET6)
                               + 1
#endif
#if (NGX_HAVE_UNIX_DOMAIN)
                               + 1
#endif
        ;

    return std::any_of(words, words + kArrays,
                       [](uintptr_t word) { return word != 0; });
}

/* The first word points to the realm, which is "off" where none is asked for,
 * the second one belongs to the file. A realm of variables may be anything. */
bool has_password(const uintptr_t *words)
{
    auto *realm = reinterpret_cast<const ngx_http_complex_value_t *>(words[0]);

    return realm != nullptr && view(realm->value) != "off" && words[1] != 0;
}

/* The first word is the size of a URI. */
bool has_uri(const uintptr_t *words)
{
    return words[0] != 0;
}

constexpr AccessModule kAccessModules[] = {
    {"ngx_http_access_module", has_addresses},
    {"ngx_http_auth_basic_module", has_password},
    {"ngx_http_auth_request_module", has_uri},
};

/* nullptr: nginx was built without it. */
const ngx_module_t *find_module(const ngx_cycle_t *cycle, std::string_view name)
{
    for (ngx_module_t **module = cycle->modules; *module != nullptr; module++) {
        if ((*module)->name == name) {
            return *module;
        }
    }

    return nullptr;
}

bool has_rule(const ngx_cycle_t *cycle, void **location)
{
    return std::any_of(std::begin(kAccessModules), std::end(kAccessModules),
                       [&](const AccessModule &known) {
                           const ngx_module_t *module =
                               find_module(cycle, known.name);

                           return module != nullptr
                                  && known.has_rule(static_cast<uintptr_t *>(
                                      location[module->ctx_index]));
                       });
}

bool is_local(const sockaddr *address)
{
    switch (address->sa_family) {
    case AF_UNIX:
        return true;

    case AF_INET:
        return ntohl(reinterpret_cast<const sockaddr_in *>(address)
                         ->sin_addr.s_addr)
                   >> 24
               == 127;

#if (NGX_HAVE_INET6)
    case AF_INET6:
        return IN6_IS_ADDR_LOOPBACK(
            &reinterpret_cast<const sockaddr_in6 *>(address)->sin6_addr);
#endif

    default:
        return false;
    }
}

/* Whether only this machine can reach the server. */
bool listens_locally(ngx_conf_t *cf, const ngx_http_core_srv_conf_t *server)
{
    auto *cmcf = static_cast<ngx_http_core_main_conf_t *>(
        ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module));

    for (const auto &port : elements<ngx_http_conf_port_t>(*cmcf->ports)) {
        for (const auto &address : elements<ngx_http_conf_addr_t>(port.addrs)) {
            auto servers =
                elements<ngx_http_core_srv_conf_t *>(address.servers);
            bool is_here = std::find(servers.begin(), servers.end(), server)
                           != servers.end();

            if (is_here && !is_local(address.opt.sockaddr)) {
                return false;
            }
        }
    }

    return true;
}

/* The directive knows where its value is, a number that is 0 if it is off: this
 * module may have been built without the headers of nginx's TLS, for an nginx
 * that has it. */
bool asks_for_certificates(const ngx_cycle_t *cycle, void **server)
{
    const ngx_module_t *module = find_module(cycle, "ngx_http_ssl_module");

    if (module == nullptr) {
        return false;
    }

    for (ngx_command_t *c = module->commands; c->name.len > 0; c++) {
        if (view(c->name) == "ssl_verify_client") {
            auto *conf = static_cast<char *>(server[module->ctx_index]);

            return *reinterpret_cast<ngx_uint_t *>(conf + c->offset) != 0;
        }
    }

    return false;
}

/* Whether a limit_except has rules for all that changes something:
 * "limit_except PUT DELETE" has them for everything else. */
bool has_rule_for_changes(const ngx_cycle_t *cycle,
                          const ngx_http_core_loc_conf_t &location)
{
    constexpr uint32_t kChanges = NGX_HTTP_PUT | NGX_HTTP_DELETE;

    return (location.limit_except & kChanges) == kChanges
           && has_rule(cycle, location.limit_except_loc_conf);
}

/* Whether an "if" there may refuse requests. */
bool has_if(void **location)
{
    return static_cast<LocationConf *>(
               location[ngx_http_sliding_limit_module.ctx_index])
        ->has_if;
}

bool is_open(ngx_conf_t *cf, const ngx_http_conf_ctx_t &ctx)
{
    auto *location = static_cast<ngx_http_core_loc_conf_t *>(
        ctx.loc_conf[ngx_http_core_module.ctx_index]);
    auto *server = static_cast<ngx_http_core_srv_conf_t *>(
        ctx.srv_conf[ngx_http_core_module.ctx_index]);

    return !location->internal && !has_rule(cf->cycle, ctx.loc_conf)
           && !has_rule_for_changes(cf->cycle, *location)
           && !has_if(ctx.loc_conf) && !has_if(server->ctx->loc_conf)
           && !asks_for_certificates(cf->cycle, ctx.srv_conf)
           && !listens_locally(cf, server);
}

/* Whether there are handlers of others than nginx's own modules and this one in
 * the phases in which requests are refused. */
bool may_have_other_rules(const ngx_cycle_t *cycle)
{
    auto *cmcf = static_cast<const ngx_http_core_main_conf_t *>(
        ngx_http_cycle_get_module_main_conf(cycle, ngx_http_core_module));
    auto known =
        std::count_if(std::begin(kAccessModules), std::end(kAccessModules),
                      [&](const AccessModule &module) {
                          return find_module(cycle, module.name) != nullptr;
                      });

    return cmcf->phases[NGX_HTTP_ACCESS_PHASE].handlers.nelts
               > static_cast<size_t>(known) + 1
           || cmcf->phases[NGX_HTTP_REWRITE_PHASE].handlers.nelts > 1;
}

}  // namespace

void find_open_admins(ngx_conf_t *cf, const MainConf &mcf) noexcept
{
    for (AdminLocation &admin : elements<AdminLocation>(mcf.admins)) {
        admin.is_open = is_open(cf, *admin.ctx);
    }
}

void warn_of_open_admins(const ngx_cycle_t *cycle, const MainConf &mcf) noexcept
{
    bool is_sure = !may_have_other_rules(cycle);

    for (const AdminLocation &admin : elements<AdminLocation>(mcf.admins)) {
        if (admin.is_open && is_sure) {
            /* the log may have a level by now that is above warnings, but
             * "nginx -t" is to show it nevertheless */
            ngx_log_error_core(
                NGX_LOG_WARN, cycle->log, 0,
                "sliding_limit: sliding_limit_metrics admin in %V:%ui lets "
                "every client change limits; add allow and deny, auth_basic or "
                "auth_request to the location, or to a limit_except GET HEAD "
                "in it",
                &admin.place.file, admin.place.line);
        }
    }
}

}  // namespace sl
