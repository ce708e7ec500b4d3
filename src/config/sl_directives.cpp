#include "config/sl_directives.h"

#include <cstddef>

#include "config/sl_config_body.h"
#include "config/sl_config_limit.h"
#include "config/sl_config_metrics.h"
#include "config/sl_config_redis.h"
#include "config/sl_config_simple.h"
#include "config/sl_config_usage.h"
#include "config/sl_config_util.h"

namespace sl {

namespace {

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
      directive<set_limit>,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      nullptr },

    { ngx_string("sliding_limit_redis"),
      NGX_HTTP_MAIN_CONF | NGX_CONF_1MORE,
      directive<set_redis>,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      nullptr },

    { ngx_string("sliding_limit_memory"),
      NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE1,
      directive<set_memory>,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      nullptr },

    { ngx_string("sliding_limit_deny_cache"),
      kAnywhere | NGX_CONF_TAKE1,
      directive<set_deny_cache>,
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
      directive<set_status>,
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
      directive<set_header_styles>,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      nullptr },

    { ngx_string("sliding_limit_body"),
      kAnywhere | NGX_CONF_TAKE12,
      directive<set_body>,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      nullptr },

    { ngx_string("sliding_limit_usage"),
      kAnywhere | NGX_CONF_1MORE,
      directive<set_usage>,
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
      directive<set_ipv6_prefix>,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      nullptr },

    { ngx_string("sliding_limit_metrics"),
      NGX_HTTP_LOC_CONF | NGX_CONF_NOARGS | NGX_CONF_TAKE123,
      directive<set_metrics>,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      nullptr },

    ngx_null_command
};
// clang-format on

}  // namespace sl
