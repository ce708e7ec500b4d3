/*
 * The module's configuration: read at start-up, merged, and from then on only
 * read. README.md documents the directives.
 */

#pragma once

#include "sl_nginx.h"
#include "sl_store.h"

extern "C" ngx_module_t ngx_http_sliding_limit_module;

namespace sl {

/* What all limits of one name share, and where that name stood first. */
struct Zone {
    ngx_str_t name;
    ngx_msec_t window;
    ngx_str_t file;
    ngx_uint_t line;
};

/* One `sliding_limit` line. */
struct Limit {
    Zone *zone;
    int64_t max;
    ngx_http_complex_value_t key;
    ngx_http_complex_value_t *fallback; /* nullptr: none */
};

enum OnError : ngx_uint_t { kPass, kDeny };
enum ResetFormat : ngx_uint_t { kDelta, kEpoch };

struct MainConf {
    ngx_array_t zones; /* Zone * */
    Store *store;      /* nullptr: not configured */
};

struct LocationConf {
    /*
     * Limit; nullptr: none of its own, so those of the level above.
     * `sliding_limit off` is an empty array.
     */
    ngx_array_t *limits;

    ngx_uint_t on_error;
    ngx_uint_t status;
    ngx_uint_t log_level;
    ngx_uint_t reset;
};

extern ngx_command_t commands[];

void *create_main_conf(ngx_conf_t *cf) noexcept;
void *create_location_conf(ngx_conf_t *cf) noexcept;
char *merge_location_conf(ngx_conf_t *cf, void *parent, void *child) noexcept;

/* Once all is read: false, with a message, if it does not fit together. */
bool check_configuration(ngx_conf_t *cf) noexcept;

inline LocationConf *location_conf(ngx_http_request_t *r) noexcept
{
    return static_cast<LocationConf *>(
        ngx_http_get_module_loc_conf(r, ngx_http_sliding_limit_module));
}

inline MainConf *main_conf(ngx_http_request_t *r) noexcept
{
    return static_cast<MainConf *>(
        ngx_http_get_module_main_conf(r, ngx_http_sliding_limit_module));
}

}  // namespace sl
