/* The one place that includes nginx's headers, which are plain C. */

#pragma once

extern "C" {
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>
#include <ngx_sha1.h>
}

#include <string_view>

extern "C" ngx_module_t ngx_http_sliding_limit_module;

namespace sl {

inline std::string_view view(const ngx_str_t &s) noexcept
{
    return {reinterpret_cast<const char *>(s.data), s.len};
}

/* For nginx calls that only read; nginx's strings are never const. */
inline ngx_str_t str(std::string_view s) noexcept
{
    return {s.size(), reinterpret_cast<u_char *>(const_cast<char *>(s.data()))};
}

/* As of this turn of the event loop, since 1970. */
inline uint64_t wall_clock_ms() noexcept
{
    const ngx_time_t *now = ngx_timeofday();

    return static_cast<uint64_t>(now->sec) * 1000 + now->msec;
}

}  // namespace sl
