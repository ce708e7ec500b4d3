#include "sl_config.h"

#include <cstddef>

#include "core/sl_key.h"
#include "sl_config_redis.h"
#include "sl_config_util.h"

namespace sl {

namespace {

constexpr int64_t kLargestMax = 2147483647;
constexpr ngx_msec_t kShortestWindow = 100;
constexpr ngx_msec_t kLongestWindow = 31UL * 24 * 60 * 60 * 1000;

MainConf *main_conf(ngx_conf_t *cf)
{
    return static_cast<MainConf *>(
        ngx_http_conf_get_module_main_conf(cf, ngx_http_sliding_limit_module));
}

/* Parameters of one `sliding_limit` line; empty if absent. */
struct LimitParameters {
    ngx_str_t zone;
    ngx_str_t max;
    ngx_str_t window;
    ngx_str_t key;
    ngx_str_t fallback;
};

const Parameter kLimitParameters[] = {
    {"zone", offsetof(LimitParameters, zone)},
    {"max", offsetof(LimitParameters, max)},
    {"window", offsetof(LimitParameters, window)},
    {"key", offsetof(LimitParameters, key)},
    {"fallback", offsetof(LimitParameters, fallback)},
};

ngx_int_t parse_max(ngx_conf_t *cf, ngx_str_t *text)
{
    ngx_int_t max = ngx_atoi(text->data, text->len);

    if (max == NGX_ERROR || max > kLargestMax) {
        return refuse_value(cf, "max", text,
                            "a whole number of requests from 0 to 2147483647");
    }

    return max;
}

ngx_msec_t parse_window(ngx_conf_t *cf, ngx_str_t *text)
{
    ngx_msec_t window = static_cast<ngx_msec_t>(ngx_parse_time(text, 0));

    if (window == static_cast<ngx_msec_t>(NGX_ERROR) || window < kShortestWindow
        || window > kLongestWindow)
    {
        return static_cast<ngx_msec_t>(
            refuse_value(cf, "window", text, "a time from 100ms to 31d"));
    }

    return window;
}

/* Finds the zone, or notes it down if this is where it is first used. */
Zone *find_or_add_zone(ngx_conf_t *cf, ngx_str_t *name, ngx_msec_t window)
{
    MainConf *mcf = main_conf(cf);
    auto **zones = static_cast<Zone **>(mcf->zones.elts);

    for (ngx_uint_t i = 0; i < mcf->zones.nelts; i++) {
        Zone *zone = zones[i];

        if (view(zone->name) != view(*name)) {
            continue;
        }

        if (zone->window != window) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "sliding_limit: zone \"%V\" has a window of "
                               "%M ms here, but %M ms in %V:%ui; one zone has "
                               "one count and needs one window",
                               name, window, zone->window, &zone->file,
                               zone->line);
            return nullptr;
        }

        return zone;
    }

    auto *zone = static_cast<Zone *>(ngx_pcalloc(cf->pool, sizeof(Zone)));
    auto **slot = static_cast<Zone **>(ngx_array_push(&mcf->zones));

    if (zone == nullptr || slot == nullptr) {
        return nullptr;
    }

    zone->name = *name;
    zone->window = window;
    zone->file = cf->conf_file->file.name;
    zone->line = cf->conf_file->line;
    *slot = zone;

    return zone;
}

bool compile(ngx_conf_t *cf, ngx_str_t *text, ngx_http_complex_value_t *value)
{
    ngx_http_compile_complex_value_t ccv;
    ngx_memzero(&ccv, sizeof(ccv));

    ccv.cf = cf;
    ccv.value = text;
    ccv.complex_value = value;

    return ngx_http_compile_complex_value(&ccv) == NGX_OK;
}

bool read_limit(ngx_conf_t *cf, LimitParameters *given, Limit *limit)
{
    if (!is_zone_name(view(given->zone))) {
        refuse_value(cf, "zone", &given->zone,
                     "1 to 64 letters, digits, \"_\", \".\" or \"-\"");
        return false;
    }

    limit->max = parse_max(cf, &given->max);

    if (limit->max == NGX_ERROR) {
        return false;
    }

    ngx_msec_t window = parse_window(cf, &given->window);

    if (window == static_cast<ngx_msec_t>(NGX_ERROR)) {
        return false;
    }

    limit->zone = find_or_add_zone(cf, &given->zone, window);

    if (limit->zone == nullptr || !compile(cf, &given->key, &limit->key)) {
        return false;
    }

    if (given->fallback.len == 0) {
        return true;
    }

    limit->fallback = static_cast<ngx_http_complex_value_t *>(
        ngx_pcalloc(cf->pool, sizeof(ngx_http_complex_value_t)));

    return limit->fallback != nullptr
           && compile(cf, &given->fallback, limit->fallback);
}

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
        if (l->zone == added->zone) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "sliding_limit: zone \"%V\" is used twice at "
                               "one level; a request counts once per zone, so "
                               "give the second limit a name of its own",
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

        if (lcf->limits == nullptr) {
            return static_cast<char *>(NGX_CONF_ERROR);
        }
    }

    if (off) {
        return NGX_CONF_OK;
    }

    LimitParameters given{};

    if (!read_parameters(cf, 1, kLimitParameters, &given)
        || !require_parameters(cf, {{"zone", given.zone},
                                    {"max", given.max},
                                    {"window", given.window},
                                    {"key", given.key}}))
    {
        return static_cast<char *>(NGX_CONF_ERROR);
    }

    auto *limit = static_cast<Limit *>(ngx_array_push(lcf->limits));

    if (limit == nullptr) {
        return static_cast<char *>(NGX_CONF_ERROR);
    }

    ngx_memzero(limit, sizeof(Limit));

    if (!read_limit(cf, &given, limit) || !may_join(cf, lcf->limits, limit)) {
        return static_cast<char *>(NGX_CONF_ERROR);
    }

    return NGX_CONF_OK;
}

char *set_redis(ngx_conf_t *cf, ngx_command_t *, void *conf) noexcept
{
    auto *mcf = static_cast<MainConf *>(conf);

    if (mcf->store != nullptr) {
        return const_cast<char *>("is duplicate");
    }

    mcf->store = new_redis_store(cf);

    return mcf->store != nullptr ? NGX_CONF_OK
                                 : static_cast<char *>(NGX_CONF_ERROR);
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

ngx_conf_enum_t on_error_choices[] = {
    {ngx_string("pass"), kPass},
    {ngx_string("deny"), kDeny},
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

    ngx_null_command
};
// clang-format on

void *create_main_conf(ngx_conf_t *cf) noexcept
{
    auto *mcf =
        static_cast<MainConf *>(ngx_pcalloc(cf->pool, sizeof(MainConf)));

    if (mcf == nullptr
        || ngx_array_init(&mcf->zones, cf->pool, 4, sizeof(Zone *)) != NGX_OK)
    {
        return nullptr;
    }

    return mcf;
}

void *create_location_conf(ngx_conf_t *cf) noexcept
{
    auto *lcf = static_cast<LocationConf *>(
        ngx_pcalloc(cf->pool, sizeof(LocationConf)));

    if (lcf == nullptr) {
        return nullptr;
    }

    lcf->on_error = NGX_CONF_UNSET_UINT;
    lcf->status = NGX_CONF_UNSET_UINT;
    lcf->log_level = NGX_CONF_UNSET_UINT;
    lcf->reset = NGX_CONF_UNSET_UINT;

    return lcf;
}

char *merge_location_conf(ngx_conf_t *, void *parent, void *child) noexcept
{
    auto *prev = static_cast<LocationConf *>(parent);
    auto *conf = static_cast<LocationConf *>(child);

    if (conf->limits == nullptr) {
        conf->limits = prev->limits;
    }

    ngx_conf_merge_uint_value(conf->on_error, prev->on_error, kPass);
    ngx_conf_merge_uint_value(conf->status, prev->status,
                              NGX_HTTP_TOO_MANY_REQUESTS);
    ngx_conf_merge_uint_value(conf->log_level, prev->log_level, NGX_LOG_WARN);
    ngx_conf_merge_uint_value(conf->reset, prev->reset, kDelta);

    return NGX_CONF_OK;
}

bool check_configuration(ngx_conf_t *cf) noexcept
{
    MainConf *mcf = main_conf(cf);

    if (mcf->zones.nelts == 0 || mcf->store != nullptr) {
        return true;
    }

    Zone *zone = static_cast<Zone **>(mcf->zones.elts)[0];

    ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                  "sliding_limit: zone \"%V\" in %V:%ui has no Redis to be "
                  "counted in; add \"sliding_limit_redis "
                  "redis://127.0.0.1:6379;\" to the http block",
                  &zone->name, &zone->file, zone->line);

    return false;
}

}  // namespace sl
