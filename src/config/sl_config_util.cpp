#include "config/sl_config_util.h"

namespace sl {

namespace {

/* Without the value: a misspelt password= has one too. */
void log_unknown(ngx_conf_t *cf, std::string_view unknown,
                 const Parameter *parameters, size_t count)
{
    u_char known[512];
    u_char *p = known;

    for (size_t i = 0; i < count; i++) {
        ngx_str_t name = str(parameters[i].name);

        p = ngx_slprintf(p, known + sizeof(known), "%s%V", i ? ", " : "",
                         &name);
    }

    ngx_str_t list = {static_cast<size_t>(p - known), known};
    ngx_str_t name = str(unknown);

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "sliding_limit: unknown parameter \"%V\", known are %V",
                       &name, &list);
}

}  // namespace

bool read_parameters(ngx_conf_t *cf, ngx_uint_t first,
                     const Parameter *parameters, size_t count,
                     void *to) noexcept
{
    auto *args = static_cast<ngx_str_t *>(cf->args->elts);

    for (ngx_uint_t a = first; a < cf->args->nelts; a++) {
        std::string_view arg = view(args[a]);
        size_t equals = arg.find('=');
        bool has_value = equals != std::string_view::npos;
        std::string_view name = has_value ? arg.substr(0, equals + 1) : arg;
        const Parameter *known = nullptr;

        for (size_t i = 0; i < count && known == nullptr; i++) {
            known = parameters[i].name == name ? &parameters[i] : nullptr;
        }

        if (known == nullptr) {
            log_unknown(cf, name, parameters, count);
            return false;
        }

        auto *value = reinterpret_cast<ngx_str_t *>(static_cast<u_char *>(to)
                                                    + known->offset);

        if (value->data != nullptr) {
            ngx_str_t text = str(name);

            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "sliding_limit: %V is given twice", &text);
            return false;
        }

        *value = has_value ? str(arg.substr(equals + 1)) : args[a];

        if (value->len == 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "sliding_limit: \"%V\" has no value", &args[a]);
            return false;
        }
    }

    return true;
}

bool require_parameters(ngx_conf_t *cf,
                        std::initializer_list<GivenParameter> all) noexcept
{
    for (const GivenParameter &given : all) {
        if (given.value.len == 0) {
            ngx_str_t name = str(given.name);

            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "sliding_limit: %V= is missing", &name);
            return false;
        }
    }

    return true;
}

ngx_int_t refuse_value(ngx_conf_t *cf, const char *name, const ngx_str_t *value,
                       const char *allowed) noexcept
{
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "sliding_limit: invalid %s \"%V\", must be %s", name,
                       value, allowed);

    return NGX_ERROR;
}

bool compile(ngx_conf_t *cf, ngx_str_t *text,
             ngx_http_complex_value_t *value) noexcept
{
    ngx_http_compile_complex_value_t ccv;
    ngx_memzero(&ccv, sizeof(ccv));

    ccv.cf = cf;
    ccv.value = text;
    ccv.complex_value = value;

    return ngx_http_compile_complex_value(&ccv) == NGX_OK;
}

Place place_of(ngx_conf_t *cf) noexcept
{
    return {cf->conf_file->file.name, cf->conf_file->line};
}

char *set_choice(ngx_conf_t *cf, ngx_command_t *cmd, void *conf) noexcept
{
    auto *to = reinterpret_cast<ngx_uint_t *>(static_cast<u_char *>(conf)
                                              + cmd->offset);
    auto *args = static_cast<ngx_str_t *>(cf->args->elts);
    auto *choices = static_cast<ngx_conf_enum_t *>(cmd->post);

    if (*to != NGX_CONF_UNSET_UINT) {
        return const_cast<char *>("is duplicate");
    }

    u_char allowed[256];
    u_char *p = allowed;

    for (ngx_conf_enum_t *c = choices; c->name.len; c++) {
        if (view(c->name) == view(args[1])) {
            *to = c->value;
            return NGX_CONF_OK;
        }

        p = ngx_slprintf(p, allowed + sizeof(allowed) - 1, "%s%V",
                         c == choices ? "" : ", ", &c->name);
    }

    *p = '\0';

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid value \"%V\" in \"%V\", must be one of: %s",
                       &args[1], &cmd->name, allowed);

    return static_cast<char *>(NGX_CONF_ERROR);
}

}  // namespace sl
