#include "config/sl_config_metrics.h"

#include <cstddef>

#include "config/sl_config_util.h"
#include "monitor/pure/sl_own_page.h"
#include "monitor/sl_metrics_location.h"
#include "monitor/sl_metrics_page.h"

namespace sl {

namespace {

struct MetricsParameters {
    ngx_str_t keys;
    ngx_str_t admin;
    ngx_str_t host;
};

const Parameter kMetricsParameters[] = {
    {"keys=", offsetof(MetricsParameters, keys)},
    {"admin", offsetof(MetricsParameters, admin)},
    {"host=", offsetof(MetricsParameters, host)},
};

bool set_keys(ngx_conf_t *cf, const ngx_str_t &text, ngx_uint_t *to)
{
    if (text.len == 0 || view(text) == "masked") {
        *to = kMaskedKeys;
    } else if (view(text) == "plain") {
        *to = kPlainKeys;
    } else if (view(text) == "off") {
        *to = kNoKeys;
    } else {
        return refuse_value(cf, "keys", text, "masked, plain or off");
    }

    return true;
}

bool set_hosts(ngx_conf_t *cf, const MetricsParameters &given, ngx_str_t *to)
{
    if (given.host.len == 0) {
        return true;
    }

    if (given.admin.len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: host=%V needs admin: it says under "
                           "which names changes are taken",
                           &given.host);
        return false;
    }

    if (!is_list_of_names(view(given.host))) {
        return refuse_value(cf, "host", given.host,
                            "host names without a port, separated by commas");
    }

    *to = given.host;
    ngx_strlow(to->data, to->data, to->len);

    return true;
}

bool read_metrics(ngx_conf_t *cf, MetricsSettings *metrics)
{
    MetricsParameters given{};

    if (!read_parameters(cf, 1, kMetricsParameters, &given)
        || !set_keys(cf, given.keys, &metrics->keys_shown)
        || !set_hosts(cf, given, &metrics->hosts))
    {
        return false;
    }

    metrics->is_admin = given.admin.len != 0;
    metrics->place = place_of(cf);

    return true;
}

ngx_http_core_loc_conf_t *core_conf(ngx_conf_t *cf)
{
    return static_cast<ngx_http_core_loc_conf_t *>(
        ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module));
}

bool note_admin(ngx_conf_t *cf)
{
    auto *admin =
        static_cast<AdminLocation *>(ngx_array_push(&main_conf(cf)->admins));

    if (admin == nullptr) {
        return false;
    }

    *admin = {static_cast<ngx_http_conf_ctx_t *>(cf->ctx), place_of(cf), false};

    return true;
}

/* Two directives of a location cannot both answer its requests: nginx would go
 * by the one that it reads last. */
bool refuse_company(ngx_conf_t *cf, const Place &place)
{
    ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                  "sliding_limit: sliding_limit_metrics in %V:%ui stands "
                  "beside another directive that answers requests, such as "
                  "proxy_pass; give it a location of its own",
                  &place.file, place.line);
    return false;
}

/* nginx itself has forgotten them when all is read. */
bool keep_server_names(ngx_conf_t *cf, MetricsSettings *metrics)
{
    auto *cscf = static_cast<ngx_http_core_srv_conf_t *>(
        ngx_http_conf_get_module_srv_conf(cf, ngx_http_core_module));
    size_t size = cscf->server_names.nelts * sizeof(ngx_http_server_name_t);
    auto *names =
        static_cast<ngx_http_server_name_t *>(ngx_palloc(cf->pool, size));

    if (names == nullptr) {
        return false;
    }

    ngx_memcpy(names, cscf->server_names.elts, size);
    metrics->server_names = {names, cscf->server_names.nelts};

    return true;
}

/* An "if" has the location's handler anyway, a "limit_except" has none. */
void inherit_metrics(const LocationConf &from, ngx_http_core_loc_conf_t *clcf,
                     LocationConf *to)
{
    to->metrics = from.metrics;

    if (to->metrics.keys_shown != 0 && clcf->lmt_excpt
        && clcf->handler == nullptr) {
        clcf->handler = metrics_handler;
    }
}

}  // namespace

bool set_metrics(ngx_conf_t *cf, LocationConf *lcf) noexcept
{
    ngx_str_t *policy = &main_conf(cf)->page_policy;
    ngx_http_core_loc_conf_t *clcf = core_conf(cf);

    if (!is_first(cf, lcf->metrics.keys_shown == 0)
        || !read_metrics(cf, &lcf->metrics)
        || (lcf->metrics.is_admin && !note_admin(cf))
        || (policy->len == 0 && !make_page_policy(cf, policy)))
    {
        return false;
    }

    if (clcf->handler != nullptr) {
        return refuse_company(cf, lcf->metrics.place);
    }

    clcf->handler = metrics_handler;

    return true;
}

bool merge_metrics(ngx_conf_t *cf, const LocationConf &from,
                   LocationConf *to) noexcept
{
    ngx_http_core_loc_conf_t *clcf = core_conf(cf);

    /* only blocks have no name of their own, locations in a location do */
    if (clcf->noname) {
        inherit_metrics(from, clcf, to);
        return true;
    }

    if (to->metrics.keys_shown != 0 && clcf->handler != metrics_handler) {
        return refuse_company(cf, to->metrics.place);
    }

    return !to->metrics.is_admin || keep_server_names(cf, &to->metrics);
}

}  // namespace sl
