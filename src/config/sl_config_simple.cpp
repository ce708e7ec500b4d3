#include "config/sl_config_simple.h"

#include "config/sl_config_util.h"

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

}  // namespace sl
