/* `sliding_limit_metrics`: the location that shows the metrics. */

#pragma once

#include "sl_nginx.h"

namespace sl {

char *set_metrics(ngx_conf_t *cf, ngx_command_t *cmd, void *conf) noexcept;

}  // namespace sl
