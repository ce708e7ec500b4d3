/*
 * What directives have in common: name=value parameters, choices from a list,
 * and error messages that quote what was given and say what is allowed.
 */

#pragma once

#include <initializer_list>

#include "request/sl_conf.h"

namespace sl {

/*
 * A parameter, and the offset of the ngx_str_t that it goes to: of "name=" its
 * value, of "name", which has no value, the name itself.
 */
struct Parameter {
    std::string_view name;
    size_t offset;
};

/*
 * Reads the arguments from number `first` on into `to`. False, with a
 * message, for one that is unknown, repeated or has no value.
 */
bool read_parameters(ngx_conf_t *cf, ngx_uint_t first,
                     const Parameter *parameters, size_t count,
                     void *to) noexcept;

template <size_t N, typename To>
bool read_parameters(ngx_conf_t *cf, ngx_uint_t first,
                     const Parameter (&parameters)[N], To *to) noexcept
{
    return read_parameters(cf, first, parameters, N, to);
}

struct GivenParameter {
    std::string_view name;
    const ngx_str_t &value;
};

/* False, with a message, if one of the parameters is not given. */
bool require_parameters(ngx_conf_t *cf,
                        std::initializer_list<GivenParameter> all) noexcept;

/*
 * Logs: sliding_limit: invalid NAME "VALUE", must be ALLOWED.
 * Always false, to be returned.
 */
bool refuse_value(ngx_conf_t *cf, const char *name, const ngx_str_t &value,
                  const char *allowed) noexcept;

struct Range {
    int64_t least;
    int64_t most;

    bool has(int64_t number) const noexcept
    {
        return number >= least && number <= most;
    }
};

/*
 * Read a whole number, and a time in milliseconds. False, with that message, if
 * `text` is none, or is not in the range, which must not begin below 0.
 */
bool read_number(ngx_conf_t *cf, const char *name, const ngx_str_t &text,
                 Range range, const char *allowed, ngx_uint_t *to) noexcept;
bool read_time(ngx_conf_t *cf, const char *name, const ngx_str_t &text,
               Range range, const char *allowed, ngx_msec_t *to) noexcept;

/* False, with nginx's message, if the directive has been set at this level. */
bool is_first(ngx_conf_t *cf, bool is_unset) noexcept;

/* A copy with a NUL behind it, for hiredis. data is nullptr: no memory. */
ngx_str_t copy_text(ngx_conf_t *cf, std::string_view text) noexcept;

/* Compiles a text with variables; false, with a message, if one is unknown. */
bool compile(ngx_conf_t *cf, ngx_str_t *text,
             ngx_http_complex_value_t *value) noexcept;

/* Where the line that is being read stands. */
Place place_of(ngx_conf_t *cf) noexcept;

/* Does what ngx_conf_set_enum_slot() does, but the message names the choices.
 */
char *set_choice(ngx_conf_t *cf, ngx_command_t *cmd, void *conf) noexcept;

/*
 * directive<kRead> is what nginx calls for a directive that kRead reads:
 * bool read(ngx_conf_t *, LocationConf *) or (ngx_conf_t *, MainConf *), which
 * returns false, with a message, if the line is not right.
 */
template <typename Conf>
bool read_into(bool (*read)(ngx_conf_t *, Conf *), ngx_conf_t *cf, void *conf)
{
    return read(cf, static_cast<Conf *>(conf));
}

template <auto kRead>
char *directive(ngx_conf_t *cf, ngx_command_t *, void *conf) noexcept
{
    return read_into(kRead, cf, conf) ? NGX_CONF_OK
                                      : static_cast<char *>(NGX_CONF_ERROR);
}

}  // namespace sl
