#include "config/sl_config_body.h"

#include <iterator>

#include "base/pure/sl_json.h"
#include "base/pure/sl_words.h"
#include "config/sl_config_util.h"

namespace sl {

namespace {

const Body kBuiltIn[] = {
    {Body::Kind::kJson, ngx_null_string, Body::Escape::kNone, nullptr},
    {Body::Kind::kProblem, ngx_null_string, Body::Escape::kNone, nullptr},
    {Body::Kind::kText, ngx_null_string, Body::Escape::kNone, nullptr},
    {Body::Kind::kGrpc, ngx_null_string, Body::Escape::kNone, nullptr},
};

bool ends_with(std::string_view text, std::string_view end)
{
    return text.size() >= end.size()
           && is_same_word(text.substr(text.size() - end.size()), end);
}

/* type/subtype, without the parameters that may follow it. */
std::string_view essence(std::string_view type)
{
    return type.substr(0, type.find(';'));
}

bool is_media_type(std::string_view text)
{
    std::string_view type = essence(text);
    size_t slash = type.find('/');

    if (slash == 0 || slash == std::string_view::npos
        || slash + 1 == type.size()) {
        return false;
    }

    for (size_t i = 0; i < type.size(); i++) {
        if (i != slash && !is_letter_or_digit(type[i])
            && std::string_view("!#&-^_.+").find(type[i])
                   == std::string_view::npos)
        {
            return false;
        }
    }

    /* nothing that could end the header */
    for (unsigned char ch : text) {
        if (ch < 0x20 || ch >= 0x7f) {
            return false;
        }
    }

    return true;
}

Body::Escape escape_for(std::string_view media_type)
{
    std::string_view type = essence(media_type);

    if (is_same_word(type, "application/json")
        || is_same_word(type, "text/json") || ends_with(type, "+json"))
    {
        return Body::Escape::kJson;
    }

    if (is_same_word(type, "text/html") || is_same_word(type, "text/xml")
        || is_same_word(type, "application/xml") || ends_with(type, "+xml"))
    {
        return Body::Escape::kHtml;
    }

    return Body::Escape::kNone;
}

/* Splits a template at its variables. */
class TemplateReader {
  public:
    TemplateReader(ngx_conf_t *cf, Body *body, const ngx_str_t &text)
        : cf_(cf), body_(body), given_(text), rest_(view(text))
    {}

    bool read()
    {
        body_->parts = ngx_array_create(cf_->pool, 4, sizeof(BodyPart));

        if (body_->parts == nullptr) {
            return false;
        }

        do {
            if (!read_part()) {
                return false;
            }
        } while (!rest_.empty());

        if (is_quoted_) {
            return refuse("a quote is not closed", view(given_));
        }

        return body_->escape != Body::Escape::kJson || is_json_with_values();
    }

  private:
    bool read_part()
    {
        auto *part = static_cast<BodyPart *>(ngx_array_push(body_->parts));

        if (part == nullptr) {
            return false;
        }

        size_t dollar = rest_.find('$');

        part->text = str(rest_.substr(0, dollar));

        if (body_->escape == Body::Escape::kJson
            && !follow_quotes(view(part->text))) {
            return refuse("an escape is not complete", rest_);
        }

        part->is_quoted = is_quoted_;
        part->variable = NGX_ERROR;
        rest_.remove_prefix(part->text.len);

        return rest_.empty() || read_variable(&part->variable);
    }

    /* $name or ${name} */
    bool read_variable(ngx_int_t *index)
    {
        std::string_view from = rest_;
        bool braced = rest_.substr(0, 2) == "${";

        rest_.remove_prefix(braced ? 2 : 1);

        size_t size = variable_name_size(rest_);

        if (size == 0) {
            return refuse("no name follows the \"$\"", from);
        }

        if (braced && rest_.substr(size, 1) != "}") {
            return refuse("no \"}\" follows the name", from);
        }

        ngx_str_t name = str(rest_.substr(0, size));

        rest_.remove_prefix(size + (braced ? 1 : 0));
        *index = ngx_http_get_variable_index(cf_, &name);

        return *index != NGX_ERROR;
    }

    /*
     * Whether what follows stands in a JSON string. False if it would stand in
     * an escape, where no value is safe.
     */
    bool follow_quotes(std::string_view text)
    {
        for (size_t i = 0; i < text.size(); i++) {
            if (text[i] == '"') {
                is_quoted_ = !is_quoted_;

            } else if (is_quoted_ && text[i] == '\\') {
                i += text.substr(i + 1, 1) == "u" ? 5 : 1;

                if (i >= text.size()) {
                    return false;
                }
            }
        }

        return true;
    }

    /* Whether it is JSON when its variables are. */
    bool is_json_with_values()
    {
        auto *parts = static_cast<const BodyPart *>(body_->parts->elts);
        auto *text = static_cast<char *>(ngx_pnalloc(
            cf_->pool, given_.len + body_->parts->nelts * kNull.size()));
        char *p = text;

        if (text == nullptr) {
            return false;
        }

        for (ngx_uint_t i = 0; i < body_->parts->nelts; i++) {
            p = append(p, view(parts[i].text));

            if (parts[i].variable != NGX_ERROR && !parts[i].is_quoted) {
                p = append(p, kNull);
            }
        }

        return is_json({text, static_cast<size_t>(p - text)})
               || refuse("there is no JSON, with a value for each variable",
                         view(given_));
    }

    /* `at` is part of the template: what is quoted of it must stay short. */
    bool refuse(const char *what, std::string_view at)
    {
        ngx_str_t quoted = str(at.substr(0, 64));

        ngx_conf_log_error(NGX_LOG_EMERG, cf_, 0,
                           "sliding_limit: in a body's template %s: \"%V%s\"",
                           what, &quoted, at.size() > 64 ? "..." : "");
        return false;
    }

    ngx_conf_t *cf_;
    Body *body_;
    const ngx_str_t &given_;
    std::string_view rest_;
    bool is_quoted_ = false;
};

}  // namespace

const Body *read_body(ngx_conf_t *cf) noexcept
{
    constexpr std::string_view kNames[] = {"json", "problem", "text", "grpc"};

    auto *args = static_cast<ngx_str_t *>(cf->args->elts);
    bool has_template = cf->args->nelts == 3;

    static_assert(std::size(kNames) == std::size(kBuiltIn), "one name each");

    for (size_t i = 0; i < std::size(kNames); i++) {
        if (view(args[1]) != kNames[i]) {
            continue;
        }

        if (has_template) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "sliding_limit: body \"%V\" takes no template; "
                               "a media type like text/plain does",
                               &args[1]);
            return nullptr;
        }

        return &kBuiltIn[i];
    }

    if (!is_media_type(view(args[1]))) {
        refuse_value(cf, "body", &args[1],
                     "json, problem, text or grpc, or a media type like "
                     "text/html and a template");
        return nullptr;
    }

    if (!has_template) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: body \"%V\" has no template",
                           &args[1]);
        return nullptr;
    }

    auto *body = static_cast<Body *>(ngx_pcalloc(cf->pool, sizeof(Body)));

    if (body == nullptr) {
        return nullptr;
    }

    body->kind = Body::Kind::kTemplate;
    body->type = args[1];
    body->escape = escape_for(view(args[1]));

    return TemplateReader(cf, body, args[2]).read() ? body : nullptr;
}

const Body *default_body() noexcept
{
    return &kBuiltIn[0];
}

}  // namespace sl
