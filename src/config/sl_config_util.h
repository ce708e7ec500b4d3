/*
 * What directives have in common: name=value parameters, choices from a list,
 * and error messages that quote what was given and say what is allowed.
 */

#pragma once

#include <initializer_list>

#include "request/sl_conf.h"

namespace sl {

/*
 * A parameter that goes to the ngx_str_t at `offset`: "name=", whose value
 * that becomes, or "name", which has none and becomes its own name.
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

/* False, with a message, if one of them is empty. */
bool require_parameters(ngx_conf_t *cf,
                        std::initializer_list<GivenParameter> all) noexcept;

/*
 * Logs: sliding_limit: invalid NAME "VALUE", must be ALLOWED.
 * Always NGX_ERROR, to be returned.
 */
ngx_int_t refuse_value(ngx_conf_t *cf, const char *name, const ngx_str_t *value,
                       const char *allowed) noexcept;

/* Text with variables; false, with a message, if it has one that is unknown. */
bool compile(ngx_conf_t *cf, ngx_str_t *text,
             ngx_http_complex_value_t *value) noexcept;

/* The line that is being read. */
Place place_of(ngx_conf_t *cf) noexcept;

/* ngx_conf_set_enum_slot(), but the message names the choices. */
char *set_choice(ngx_conf_t *cf, ngx_command_t *cmd, void *conf) noexcept;

}  // namespace sl
