#include "config/sl_config_usage.h"

#include <new>

#include "config/sl_config_util.h"
#include "usage/sl_usage.h"

namespace sl {

namespace {

bool add_path(ngx_conf_t *cf, const ngx_str_t &path, UsagePaths *paths)
{
    if (view(path) == "off") {
        return refuse_value(cf, "usage", path,
                            "alone if nothing is to be read");
    }

    if (!UsagePaths::is_path(view(path))) {
        return refuse_value(cf, "usage", path,
                            "one to eight names of up to 64 bytes, separated "
                            "by dots, for example usage.total_tokens");
    }

    if (!paths->add(view(path))) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: \"%V\" is one usage too many, "
                           "there can be %uz",
                           &path, UsagePaths::kMostPaths);
        return false;
    }

    return true;
}

}  // namespace

bool set_usage(ngx_conf_t *cf, LocationConf *lcf) noexcept
{
    auto words = words_of(cf);
    bool off = words.size() == 2 && view(words[1]) == "off";

    if (!is_first(cf, lcf->usage == nullptr)) {
        return false;
    }

    void *memory = ngx_palloc(cf->pool, sizeof(UsageSettings));

    if (memory == nullptr) {
        return false;
    }

    lcf->usage = new (memory) UsageSettings();

    for (size_t i = 1; i < words.size() && !off; i++) {
        if (!add_path(cf, words[i], &lcf->usage->paths)) {
            return false;
        }

        main_conf(cf)->reads_usage = true;
    }

    return true;
}

}  // namespace sl
