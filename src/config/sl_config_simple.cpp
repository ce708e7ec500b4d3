#include "config/sl_config_simple.h"

#include "config/sl_config_util.h"
#include "monitor/sl_metrics_location.h"
#include "monitor/sl_metrics_page.h"

namespace sl {

namespace {

constexpr ssize_t kSmallestMemory = 64 * 1024;

/* Returns 0 if there is no such style, or "off" does not stand alone. */
ngx_uint_t header_style(std::string_view name, bool is_alone)
{
    if (name == "x") {
        return kXHeaders;
    }

    if (name == "ietf") {
        return kIetfHeaders;
    }

    return name == "off" && is_alone ? ngx_uint_t{kNoHeaders} : 0;
}

/* Returns 0 if there is no such choice. */
ngx_uint_t keys_shown(std::string_view argument)
{
    static constexpr struct {
        std::string_view argument;
        KeysShown keys;
    } kChoices[] = {
        {"keys=masked", kMaskedKeys},
        {"keys=plain", kPlainKeys},
        {"keys=off", kNoKeys},
    };

    for (const auto &choice : kChoices) {
        if (argument == choice.argument) {
            return choice.keys;
        }
    }

    return 0;
}

bool read_metrics_parameter(ngx_conf_t *cf, const ngx_str_t &word,
                            LocationConf *lcf)
{
    bool is_admin = view(word) == "admin";
    ngx_uint_t keys = keys_shown(view(word));

    if (!is_admin && keys == 0) {
        return refuse_value(cf, "parameter", word,
                            "\"keys=masked\", \"keys=plain\", \"keys=off\" "
                            "or \"admin\"");
    }

    if (is_admin ? lcf->is_admin : lcf->keys_shown != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: %s is given twice",
                           is_admin ? "admin" : "keys");
        return false;
    }

    lcf->is_admin = lcf->is_admin || is_admin;
    lcf->keys_shown = is_admin ? lcf->keys_shown : keys;

    return true;
}

}  // namespace

bool set_memory(ngx_conf_t *cf, MainConf *mcf) noexcept
{
    ngx_str_t *given = &words_of(cf)[1];

    if (!is_first(cf, mcf->memory_size == NGX_CONF_UNSET_SIZE)) {
        return false;
    }

    ssize_t size = ngx_parse_size(given);

    if (size < kSmallestMemory) {
        return refuse_value(cf, "memory", *given,
                            "a size of at least 64k, for example 16m");
    }

    mcf->memory_size = static_cast<size_t>(size);

    return true;
}

bool set_deny_cache(ngx_conf_t *cf, LocationConf *lcf) noexcept
{
    const ngx_str_t &given = words_of(cf)[1];

    if (!is_first(cf, lcf->deny_cache == NGX_CONF_UNSET_MSEC)) {
        return false;
    }

    if (view(given) == "off") {
        lcf->deny_cache = 0;
        return true;
    }

    return read_time(cf, "deny_cache", given, {1, kLongestWindow},
                     "a time from 1ms to 31d, or \"off\"", &lcf->deny_cache);
}

bool set_status(ngx_conf_t *cf, LocationConf *lcf) noexcept
{
    return is_first(cf, lcf->status == NGX_CONF_UNSET_UINT)
           && read_number(cf, "status", words_of(cf)[1], {400, 599},
                          "an HTTP status from 400 to 599", &lcf->status);
}

bool set_header_styles(ngx_conf_t *cf, LocationConf *lcf) noexcept
{
    auto words = words_of(cf);

    if (!is_first(cf, lcf->headers == 0)) {
        return false;
    }

    for (size_t i = 1; i < words.size(); i++) {
        ngx_uint_t bit = header_style(view(words[i]), words.size() == 2);

        if (bit == 0) {
            return refuse_value(cf, "headers", words[i],
                                "\"x\", \"ietf\", both of them, or \"off\" "
                                "alone");
        }

        if (lcf->headers & bit) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "sliding_limit: headers \"%V\" is given twice",
                               &words[i]);
            return false;
        }

        lcf->headers |= bit;
    }

    return true;
}

bool set_ipv6_prefix(ngx_conf_t *cf, LocationConf *lcf) noexcept
{
    return is_first(cf, lcf->ipv6_prefix == NGX_CONF_UNSET_UINT)
           && read_number(cf, "ipv6_prefix", words_of(cf)[1], {1, 128},
                          "a whole number of bits from 1 to 128",
                          &lcf->ipv6_prefix);
}

bool set_metrics(ngx_conf_t *cf, LocationConf *lcf) noexcept
{
    auto words = words_of(cf);
    auto *clcf = static_cast<ngx_http_core_loc_conf_t *>(
        ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module));
    ngx_str_t *policy = &main_conf(cf)->page_policy;

    if (!is_first(cf, lcf->keys_shown == 0)) {
        return false;
    }

    for (size_t i = 1; i < words.size(); i++) {
        if (!read_metrics_parameter(cf, words[i], lcf)) {
            return false;
        }
    }

    if (lcf->keys_shown == 0) {
        lcf->keys_shown = kMaskedKeys;
    }

    if (policy->len == 0 && !make_page_policy(cf, policy)) {
        return false;
    }

    clcf->handler = metrics_handler;

    return true;
}

}  // namespace sl
