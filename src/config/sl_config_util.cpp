#include "config/sl_config_util.h"

#include "base/pure/sl_number.h"

namespace sl {

namespace {

/* The message leaves out the value: a misspelt password= has one, too. */
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

    ngx_str_t list = str(view(known, p));
    ngx_str_t name = str(unknown);

    ngx_conf_log_error(
        NGX_LOG_EMERG, cf, 0,
        "sliding_limit: unknown parameter \"%V\", must be one of: %V", &name,
        &list);
}

}  // namespace

bool read_parameters(ngx_conf_t *cf, ngx_uint_t first,
                     const Parameter *parameters, size_t count,
                     void *to) noexcept
{
    auto words = words_of(cf);

    for (size_t w = first; w < words.size(); w++) {
        std::string_view arg = view(words[w]);
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

        *value = has_value ? str(arg.substr(equals + 1)) : words[w];

        if (value->len == 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "sliding_limit: \"%V\" has no value", &words[w]);
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

bool refuse_value(ngx_conf_t *cf, const char *name, const ngx_str_t &value,
                  const char *allowed) noexcept
{
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "sliding_limit: invalid %s \"%V\", must be %s", name,
                       &value, allowed);

    return false;
}

bool read_number(ngx_conf_t *cf, const char *name, const ngx_str_t &text,
                 Range range, const char *allowed, ngx_uint_t *to) noexcept
{
    int64_t number = parse_count(view(text));

    if (!range.has(number)) {
        return refuse_value(cf, name, text, allowed);
    }

    *to = static_cast<ngx_uint_t>(number);
    return true;
}

bool read_time(ngx_conf_t *cf, const char *name, const ngx_str_t &text,
               Range range, const char *allowed, ngx_msec_t *to) noexcept
{
    ngx_str_t given = text;
    ngx_int_t ms = ngx_parse_time(&given, 0);

    if (!range.has(ms)) {
        return refuse_value(cf, name, text, allowed);
    }

    *to = static_cast<ngx_msec_t>(ms);
    return true;
}

bool is_first(ngx_conf_t *cf, bool is_unset) noexcept
{
    if (!is_unset) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" directive is duplicate", &words_of(cf)[0]);
    }

    return is_unset;
}

ngx_str_t copy_text(ngx_conf_t *cf, std::string_view text) noexcept
{
    auto *data = static_cast<u_char *>(ngx_pnalloc(cf->pool, text.size() + 1));

    if (data == nullptr) {
        return ngx_null_string;
    }

    *ngx_cpymem(data, text.data(), text.size()) = '\0';

    return {text.size(), data};
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
    const ngx_str_t &given = words_of(cf)[1];
    auto *choices = static_cast<ngx_conf_enum_t *>(cmd->post);

    if (!is_first(cf, *to == NGX_CONF_UNSET_UINT)) {
        return static_cast<char *>(NGX_CONF_ERROR);
    }

    u_char allowed[256];
    u_char *p = allowed;

    for (ngx_conf_enum_t *c = choices; c->name.len; c++) {
        if (view(c->name) == view(given)) {
            *to = c->value;
            return NGX_CONF_OK;
        }

        p = ngx_slprintf(p, allowed + sizeof(allowed) - 1, "%s%V",
                         c == choices ? "" : ", ", &c->name);
    }

    *p = '\0';

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid value \"%V\" in \"%V\", must be one of: %s",
                       &given, &cmd->name, allowed);

    return static_cast<char *>(NGX_CONF_ERROR);
}

}  // namespace sl
