#include "config/sl_directives.h"

#include <algorithm>
#include <cstddef>
#include <new>

#include "answer/sl_body.h"
#include "base/pure/sl_number.h"
#include "config/sl_config_body.h"
#include "config/sl_config_limit.h"
#include "config/sl_config_redis.h"
#include "config/sl_config_util.h"
#include "config/sl_link.h"
#include "monitor/sl_metrics_location.h"
#include "monitor/sl_metrics_page.h"
#include "redis/sl_redis_store.h"

namespace sl {

namespace {

constexpr ngx_uint_t kDefaultIpv6Prefix = 64;
constexpr ssize_t kSmallestMemory = 64 * 1024;
constexpr ngx_msec_t kDefaultDenyCacheMs = 1000;

/* Whether one more limit may stand beside those of this level. */
bool may_join(ngx_conf_t *cf, const ngx_array_t *limits, const Limit *added)
{
    if (limits->nelts > kMaxLimits) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: more than %uz limits at one level",
                           kMaxLimits);
        return false;
    }

    for (auto *l = static_cast<Limit *>(limits->elts); l != added; l++) {
        if (l->zone == added->zone && l->condition == nullptr) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "sliding_limit: zone \"%V\" is used twice at "
                               "one level; a request counts once per zone, so "
                               "give the second limit a name of its own, or "
                               "the first one an if=",
                               &added->zone->name);
            return false;
        }
    }

    return true;
}

char *set_limit(ngx_conf_t *cf, ngx_command_t *, void *conf) noexcept
{
    auto *lcf = static_cast<LocationConf *>(conf);
    auto *args = static_cast<ngx_str_t *>(cf->args->elts);
    bool off = cf->args->nelts == 2 && view(args[1]) == "off";

    if (lcf->limits != nullptr && (off || lcf->limits->nelts == 0)) {
        return const_cast<char *>(
            "cannot be \"off\" beside other limits of the same level");
    }

    if (lcf->limits == nullptr) {
        lcf->limits = ngx_array_create(cf->pool, 1, sizeof(Limit));

        auto **level =
            static_cast<ngx_array_t **>(ngx_array_push(&main_conf(cf)->levels));

        if (lcf->limits == nullptr || level == nullptr) {
            return static_cast<char *>(NGX_CONF_ERROR);
        }

        *level = lcf->limits;
    }

    if (off) {
        return NGX_CONF_OK;
    }

    auto *limit = static_cast<Limit *>(ngx_array_push(lcf->limits));

    if (limit == nullptr) {
        return static_cast<char *>(NGX_CONF_ERROR);
    }

    ngx_memzero(limit, sizeof(Limit));

    if (!read_limit(cf, limit) || !may_join(cf, lcf->limits, limit)) {
        return static_cast<char *>(NGX_CONF_ERROR);
    }

    lcf->phases |= limit->phase;

    return NGX_CONF_OK;
}

char *set_redis(ngx_conf_t *cf, ngx_command_t *, void *conf) noexcept
{
    auto *mcf = static_cast<MainConf *>(conf);
    NamedStore store{};

    if (!read_redis(cf, &store)) {
        return static_cast<char *>(NGX_CONF_ERROR);
    }

    const NamedStore *other = find_store(*mcf, view(store.name));

    if (other != nullptr) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: there is a redis named \"%V\" in "
                           "%V:%ui already; give this one another name=, "
                           "which limits refer to with store=",
                           &store.name, &other->place.file, other->place.line);
        return static_cast<char *>(NGX_CONF_ERROR);
    }

    auto *added = static_cast<NamedStore *>(ngx_array_push(&mcf->stores));

    if (added == nullptr) {
        return static_cast<char *>(NGX_CONF_ERROR);
    }

    *added = store;

    return NGX_CONF_OK;
}

char *set_memory(ngx_conf_t *cf, ngx_command_t *, void *conf) noexcept
{
    auto *mcf = static_cast<MainConf *>(conf);
    auto *args = static_cast<ngx_str_t *>(cf->args->elts);

    if (mcf->memory_size != NGX_CONF_UNSET_SIZE) {
        return const_cast<char *>("is duplicate");
    }

    ssize_t size = ngx_parse_size(&args[1]);

    if (size == NGX_ERROR || size < kSmallestMemory) {
        refuse_value(cf, "memory", &args[1],
                     "a size of at least 64k, for example 16m");
        return static_cast<char *>(NGX_CONF_ERROR);
    }

    mcf->memory_size = static_cast<size_t>(size);

    return NGX_CONF_OK;
}

char *set_deny_cache(ngx_conf_t *cf, ngx_command_t *, void *conf) noexcept
{
    auto *lcf = static_cast<LocationConf *>(conf);
    auto *args = static_cast<ngx_str_t *>(cf->args->elts);

    if (lcf->deny_cache != NGX_CONF_UNSET_MSEC) {
        return const_cast<char *>("is duplicate");
    }

    if (view(args[1]) == "off") {
        lcf->deny_cache = 0;
        return NGX_CONF_OK;
    }

    ngx_int_t time = ngx_parse_time(&args[1], 0);

    if (time < 1 || static_cast<ngx_msec_t>(time) > kLongestWindow) {
        refuse_value(cf, "deny_cache", &args[1],
                     "a time from 1ms to 31d, or \"off\"");
        return static_cast<char *>(NGX_CONF_ERROR);
    }

    lcf->deny_cache = static_cast<ngx_msec_t>(time);

    return NGX_CONF_OK;
}

char *set_status(ngx_conf_t *cf, ngx_command_t *, void *conf) noexcept
{
    auto *lcf = static_cast<LocationConf *>(conf);
    auto *args = static_cast<ngx_str_t *>(cf->args->elts);

    if (lcf->status != NGX_CONF_UNSET_UINT) {
        return const_cast<char *>("is duplicate");
    }

    ngx_int_t status = ngx_atoi(args[1].data, args[1].len);

    if (status == NGX_ERROR || status < 400 || status > 599) {
        refuse_value(cf, "status", &args[1], "an HTTP status from 400 to 599");
        return static_cast<char *>(NGX_CONF_ERROR);
    }

    lcf->status = static_cast<ngx_uint_t>(status);

    return NGX_CONF_OK;
}

char *set_headers(ngx_conf_t *cf, ngx_command_t *, void *conf) noexcept
{
    auto *lcf = static_cast<LocationConf *>(conf);
    auto *args = static_cast<ngx_str_t *>(cf->args->elts);
    bool alone = cf->args->nelts == 2;

    if (lcf->headers != 0) {
        return const_cast<char *>("is duplicate");
    }

    for (ngx_uint_t i = 1; i < cf->args->nelts; i++) {
        std::string_view style = view(args[i]);
        ngx_uint_t bit = 0;

        if (style == "x") {
            bit = kXHeaders;
        } else if (style == "ietf") {
            bit = kIetfHeaders;
        } else if (style == "off" && alone) {
            bit = kNoHeaders;
        }

        if (bit != 0 && (lcf->headers & bit)) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "sliding_limit: headers \"%V\" is given twice",
                               &args[i]);
            return static_cast<char *>(NGX_CONF_ERROR);
        }

        if (bit == 0) {
            refuse_value(cf, "headers", &args[i],
                         "\"x\", \"ietf\", both of them, or \"off\" alone");
            return static_cast<char *>(NGX_CONF_ERROR);
        }

        lcf->headers |= bit;
    }

    return NGX_CONF_OK;
}

char *set_ipv6_prefix(ngx_conf_t *cf, ngx_command_t *, void *conf) noexcept
{
    auto *lcf = static_cast<LocationConf *>(conf);
    auto *args = static_cast<ngx_str_t *>(cf->args->elts);

    if (lcf->ipv6_prefix != NGX_CONF_UNSET_UINT) {
        return const_cast<char *>("is duplicate");
    }

    int64_t prefix = parse_count(view(args[1]));

    if (prefix < 1 || prefix > 128) {
        refuse_value(cf, "ipv6_prefix", &args[1],
                     "a whole number of bits from 1 to 128");
        return static_cast<char *>(NGX_CONF_ERROR);
    }

    lcf->ipv6_prefix = static_cast<ngx_uint_t>(prefix);

    return NGX_CONF_OK;
}

char *set_body(ngx_conf_t *cf, ngx_command_t *, void *conf) noexcept
{
    auto *lcf = static_cast<LocationConf *>(conf);

    if (lcf->body != nullptr) {
        return const_cast<char *>("is duplicate");
    }

    lcf->body = read_body(cf);

    return lcf->body != nullptr ? NGX_CONF_OK
                                : static_cast<char *>(NGX_CONF_ERROR);
}

char *set_metrics(ngx_conf_t *cf, ngx_command_t *, void *conf) noexcept
{
    static constexpr struct {
        std::string_view argument;
        KeysShown keys;
    } kChoices[] = {
        {"keys=masked", kMaskedKeys},
        {"keys=plain", kPlainKeys},
        {"keys=off", kNoKeys},
    };

    auto *lcf = static_cast<LocationConf *>(conf);
    auto *args = static_cast<ngx_str_t *>(cf->args->elts);
    auto *clcf = static_cast<ngx_http_core_loc_conf_t *>(
        ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module));
    MainConf *mcf = main_conf(cf);

    if (lcf->keys_shown != 0) {
        return const_cast<char *>("is duplicate");
    }

    if (cf->args->nelts == 1) {
        lcf->keys_shown = kMaskedKeys;
    }

    for (const auto &choice : kChoices) {
        if (cf->args->nelts == 2 && view(args[1]) == choice.argument) {
            lcf->keys_shown = choice.keys;
        }
    }

    if (lcf->keys_shown == 0) {
        refuse_value(cf, "parameter", &args[1],
                     "\"keys=masked\", \"keys=plain\" or \"keys=off\"");
        return static_cast<char *>(NGX_CONF_ERROR);
    }

    if (mcf->page_policy.len == 0 && !make_page_policy(cf, &mcf->page_policy)) {
        return static_cast<char *>(NGX_CONF_ERROR);
    }

    clcf->handler = metrics_handler;

    return NGX_CONF_OK;
}

ngx_conf_enum_t on_error_choices[] = {
    {ngx_string("pass"), kPass},
    {ngx_string("deny"), kDeny},
    {ngx_string("local"), kLocal},
    {ngx_null_string, 0},
};

ngx_conf_enum_t reset_choices[] = {
    {ngx_string("delta"), kDelta},
    {ngx_string("epoch"), kEpoch},
    {ngx_null_string, 0},
};

ngx_conf_enum_t log_level_choices[] = {
    {ngx_string("info"), NGX_LOG_INFO},
    {ngx_string("notice"), NGX_LOG_NOTICE},
    {ngx_string("warn"), NGX_LOG_WARN},
    {ngx_string("error"), NGX_LOG_ERR},
    {ngx_null_string, 0},
};

constexpr ngx_uint_t kAnywhere =
    NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF;

}  // namespace

// clang-format off
ngx_command_t commands[] = {

    { ngx_string("sliding_limit"),
      kAnywhere | NGX_CONF_1MORE,
      set_limit,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      nullptr },

    { ngx_string("sliding_limit_redis"),
      NGX_HTTP_MAIN_CONF | NGX_CONF_1MORE,
      set_redis,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      nullptr },

    { ngx_string("sliding_limit_memory"),
      NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE1,
      set_memory,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      nullptr },

    { ngx_string("sliding_limit_deny_cache"),
      kAnywhere | NGX_CONF_TAKE1,
      set_deny_cache,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      nullptr },

    { ngx_string("sliding_limit_on_error"),
      kAnywhere | NGX_CONF_TAKE1,
      set_choice,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(LocationConf, on_error),
      on_error_choices },

    { ngx_string("sliding_limit_status"),
      kAnywhere | NGX_CONF_TAKE1,
      set_status,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      nullptr },

    { ngx_string("sliding_limit_log_level"),
      kAnywhere | NGX_CONF_TAKE1,
      set_choice,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(LocationConf, log_level),
      log_level_choices },

    { ngx_string("sliding_limit_reset"),
      kAnywhere | NGX_CONF_TAKE1,
      set_choice,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(LocationConf, reset),
      reset_choices },

    { ngx_string("sliding_limit_headers"),
      kAnywhere | NGX_CONF_1MORE,
      set_headers,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      nullptr },

    { ngx_string("sliding_limit_body"),
      kAnywhere | NGX_CONF_TAKE12,
      set_body,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      nullptr },

    { ngx_string("sliding_limit_dry_run"),
      kAnywhere | NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(LocationConf, dry_run),
      nullptr },

    { ngx_string("sliding_limit_ipv6_prefix"),
      kAnywhere | NGX_CONF_TAKE1,
      set_ipv6_prefix,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      nullptr },

    { ngx_string("sliding_limit_metrics"),
      NGX_HTTP_LOC_CONF | NGX_CONF_NOARGS | NGX_CONF_TAKE1,
      set_metrics,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      nullptr },

    ngx_null_command
};
// clang-format on

void *create_main_conf(ngx_conf_t *cf) noexcept
{
    auto *mcf =
        static_cast<MainConf *>(ngx_pcalloc(cf->pool, sizeof(MainConf)));

    if (mcf == nullptr
        || ngx_array_init(&mcf->zones, cf->pool, 4, sizeof(Zone *)) != NGX_OK
        || ngx_array_init(&mcf->stores, cf->pool, 1, sizeof(NamedStore))
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

char *merge_location_conf(ngx_conf_t *, void *parent, void *child) noexcept
{
    auto *prev = static_cast<LocationConf *>(parent);
    auto *conf = static_cast<LocationConf *>(child);

    if (conf->limits == nullptr) {
        conf->limits = prev->limits;
        conf->phases = prev->phases;
    }

    /* an "if" inside the location has its handler, too */
    if (conf->keys_shown == 0) {
        conf->keys_shown = prev->keys_shown;
    }

    if (conf->headers == 0) {
        conf->headers = prev->headers != 0 ? prev->headers : kXHeaders;
    }

    if (conf->body == nullptr) {
        conf->body = prev->body != nullptr ? prev->body : default_body();
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
