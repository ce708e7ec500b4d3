#include "config/sl_defaults.h"

#include "config/sl_config_body.h"
#include "config/sl_config_metrics.h"
#include "redis/sl_redis_store.h"
#include "usage/sl_usage.h"

namespace sl {

namespace {

constexpr ngx_uint_t kDefaultIpv6Prefix = 64;
constexpr ngx_msec_t kDefaultDenyCacheMs = 1000;

/* Whether it is the "if" of a location or of a server. */
bool is_if(ngx_conf_t *cf)
{
    auto *clcf = static_cast<ngx_http_core_loc_conf_t *>(
        ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module));

    return clcf->noname && !clcf->lmt_excpt;
}

/* Tells the limits that apply at a level that responses are read there. */
void note_usage(const LocationConf &conf)
{
    if (conf.limits == nullptr || conf.usage == nullptr
        || conf.usage->paths.is_empty())
    {
        return;
    }

    for (Limit &limit : elements<Limit>(*conf.limits)) {
        limit.has_usage = true;
    }
}

}  // namespace

void *create_main_conf(ngx_conf_t *cf) noexcept
{
    auto *mcf =
        static_cast<MainConf *>(ngx_pcalloc(cf->pool, sizeof(MainConf)));

    if (mcf == nullptr
        || ngx_array_init(&mcf->zones, cf->pool, 4, sizeof(Zone *)) != NGX_OK
        || ngx_array_init(&mcf->stores, cf->pool, 1, sizeof(NamedStore))
               != NGX_OK
        || ngx_array_init(&mcf->admins, cf->pool, 1, sizeof(AdminLocation))
               != NGX_OK
        || ngx_array_init(&mcf->levels, cf->pool, 4, sizeof(ngx_array_t *))
               != NGX_OK)
    {
        return nullptr;
    }

    mcf->memory_size = NGX_CONF_UNSET_SIZE;
    mcf->hiredis_version = hiredis_version();
    mcf->has_tls = hiredis_has_tls();

    return mcf;
}

void *create_location_conf(ngx_conf_t *cf) noexcept
{
    auto *lcf = static_cast<LocationConf *>(
        ngx_pcalloc(cf->pool, sizeof(LocationConf)));

    if (lcf == nullptr) {
        return nullptr;
    }

    lcf->deny_cache = NGX_CONF_UNSET_MSEC;
    lcf->on_error = NGX_CONF_UNSET_UINT;
    lcf->status = NGX_CONF_UNSET_UINT;
    lcf->log_level = NGX_CONF_UNSET_UINT;
    lcf->reset = NGX_CONF_UNSET_UINT;
    lcf->ipv6_prefix = NGX_CONF_UNSET_UINT;
    lcf->dry_run = NGX_CONF_UNSET;

    return lcf;
}

char *merge_location_conf(ngx_conf_t *cf, void *parent, void *child) noexcept
{
    auto *prev = static_cast<LocationConf *>(parent);
    auto *conf = static_cast<LocationConf *>(child);

    if (conf->limits == nullptr) {
        conf->limits = prev->limits;
        conf->phases = prev->phases;
    }

    if (!merge_metrics(cf, *prev, conf)) {
        return static_cast<char *>(NGX_CONF_ERROR);
    }

    if (conf->headers == 0) {
        conf->headers = prev->headers != 0 ? prev->headers : kXHeaders;
    }

    if (conf->body == nullptr) {
        conf->body = prev->body != nullptr ? prev->body : default_body();
    }

    if (conf->usage == nullptr) {
        conf->usage = prev->usage;
    }

    note_usage(*conf);

    if (is_if(cf)) {
        prev->has_if = true;
    }

    ngx_conf_merge_msec_value(conf->deny_cache, prev->deny_cache,
                              kDefaultDenyCacheMs);
    ngx_conf_merge_uint_value(conf->on_error, prev->on_error, kPass);
    ngx_conf_merge_uint_value(conf->status, prev->status,
                              NGX_HTTP_TOO_MANY_REQUESTS);
    ngx_conf_merge_uint_value(conf->log_level, prev->log_level, NGX_LOG_ERR);
    ngx_conf_merge_uint_value(conf->reset, prev->reset, kDelta);
    ngx_conf_merge_uint_value(conf->ipv6_prefix, prev->ipv6_prefix,
                              kDefaultIpv6Prefix);
    ngx_conf_merge_value(conf->dry_run, prev->dry_run, 0);

    return NGX_CONF_OK;
}

}  // namespace sl
