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

/* Is for nginx calls that only read: nginx's strings are never const. */
inline ngx_str_t str(std::string_view s) noexcept
{
    return {s.size(), reinterpret_cast<u_char *>(const_cast<char *>(s.data()))};
}

/* nginx's text is made of unsigned bytes, everybody else's is not. */
inline char *chars(u_char *text) noexcept
{
    return reinterpret_cast<char *>(text);
}

inline u_char *bytes(char *text) noexcept
{
    return reinterpret_cast<u_char *>(text);
}

inline std::string_view view(u_char *begin, u_char *end) noexcept
{
    return {chars(begin), static_cast<size_t>(end - begin)};
}

/* Walks an nginx array: for (Zone *zone : elements<Zone *>(zones)) */
template <typename T>
struct Elements {
    T *first;
    size_t count;

    T *begin() const noexcept { return first; }
    T *end() const noexcept { return first + count; }
    T &operator[](size_t i) const noexcept { return first[i]; }
    size_t size() const noexcept { return count; }
};

template <typename T>
Elements<T> elements(const ngx_array_t &array) noexcept
{
    return {static_cast<T *>(array.elts), array.nelts};
}

/* The words of the directive that is being read; its name is the first. */
inline Elements<ngx_str_t> words_of(ngx_conf_t *cf) noexcept
{
    return elements<ngx_str_t>(*cf->args);
}

/* The time since 1970, as of this turn of the event loop. */
inline uint64_t wall_clock_ms() noexcept
{
    const ngx_time_t *now = ngx_timeofday();

    return static_cast<uint64_t>(now->sec) * 1000 + now->msec;
}

}  // namespace sl
