#include "config/sl_config_body.h"

#include <new>

#include "config/sl_config_util.h"

namespace sl {

namespace {

/* `at` is a part of the template, of which little is quoted. Always false. */
bool refuse_template(ngx_conf_t *cf, const char *what, std::string_view at)
{
    ngx_str_t quoted = str(at.substr(0, 64));

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "sliding_limit: invalid body template, %s: \"%V%s\"",
                       what, &quoted, at.size() > 64 ? "..." : "");
    return false;
}

/* Whether the template is JSON when its variables are. */
bool is_json_with_values(ngx_conf_t *cf, std::string_view text)
{
    auto *memory =
        static_cast<char *>(ngx_pnalloc(cf->pool, room_for_json_check(text)));

    return memory != nullptr
           && (is_json_template(text, memory)
               || refuse_template(
                   cf, "it is not JSON, even with a value for each variable",
                   text));
}

bool add_part(ngx_conf_t *cf, const TemplatePart &part, ngx_array_t *parts)
{
    auto *added = static_cast<BodyPart *>(ngx_array_push(parts));

    if (added == nullptr) {
        return false;
    }

    *added = {str(part.text), NGX_ERROR, part.is_quoted};

    if (part.variable.empty()) {
        return true;
    }

    ngx_str_t name = str(part.variable);

    added->variable = ngx_http_get_variable_index(cf, &name);

    return added->variable != NGX_ERROR;
}

bool read_template(ngx_conf_t *cf, std::string_view text, Body *body)
{
    TemplateReader reader(text, body->escape);
    TemplatePart part;

    body->parts = ngx_array_create(cf->pool, 4, sizeof(BodyPart));

    if (body->parts == nullptr) {
        return false;
    }

    while (reader.next(&part)) {
        if (!add_part(cf, part, body->parts)) {
            return false;
        }
    }

    if (reader.error() != nullptr) {
        return refuse_template(cf, reader.error(), reader.error_at());
    }

    return body->escape != BodyEscape::kJson || is_json_with_values(cf, text);
}

/* Logs what is wrong with the body that is named. Always nullptr. */
const Body *refuse(ngx_conf_t *cf, const char *why)
{
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "sliding_limit: body \"%V\" %s",
                       &words_of(cf)[1], why);
    return nullptr;
}

/* Returns nullptr, with a message, if the line is not right. */
const Body *read_body(ngx_conf_t *cf)
{
    auto words = words_of(cf);
    bool has_template = words.size() == 3;
    const Body *ours = find_body(view(words[1]));

    if (ours != nullptr && has_template) {
        return refuse(cf,
                      "takes no template; a media type like text/plain does");
    }

    if (ours != nullptr) {
        return ours;
    }

    if (!is_media_type(view(words[1]))) {
        refuse_value(cf, "body", words[1],
                     "json, problem, text or grpc, or a media type like "
                     "text/html and a template");
        return nullptr;
    }

    if (!has_template) {
        return refuse(cf, "has no template");
    }

    void *memory = ngx_palloc(cf->pool, sizeof(Body));

    if (memory == nullptr) {
        return nullptr;
    }

    auto *body = new (memory) Body{{}, words[1], write_template};

    body->escape = escape_for(view(words[1]));

    return read_template(cf, view(words[2]), body) ? body : nullptr;
}

}  // namespace

bool set_body(ngx_conf_t *cf, LocationConf *lcf) noexcept
{
    if (!is_first(cf, lcf->body == nullptr)) {
        return false;
    }

    lcf->body = read_body(cf);

    return lcf->body != nullptr;
}

const Body *default_body() noexcept
{
    return find_body("json");
}

}  // namespace sl
