#include "config/sl_config_body.h"

#include <new>

#include "base/pure/sl_json.h"
#include "base/pure/sl_words.h"
#include "config/sl_config_util.h"

namespace sl {

namespace {

bool ends_with(std::string_view text, std::string_view end)
{
    return text.size() >= end.size()
           && is_same_word(text.substr(text.size() - end.size()), end);
}

/* The type/subtype, without the parameters that may follow it. */
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

    /* there must be nothing in it that could end the header */
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

    /* Reads $name or ${name}. */
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
     * Finds out whether what follows the text stands in a JSON string. False if
     * it would stand in an escape, where no value is safe.
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

    /* Whether the template is JSON when its variables are. */
    bool is_json_with_values()
    {
        auto parts = elements<const BodyPart>(*body_->parts);
        auto *text = static_cast<char *>(
            ngx_pnalloc(cf_->pool, given_.len + parts.size() * kNull.size()));
        char *p = text;

        if (text == nullptr) {
            return false;
        }

        for (const BodyPart &part : parts) {
            p = append(p, view(part.text));

            if (part.variable != NGX_ERROR && !part.is_quoted) {
                p = append(p, kNull);
            }
        }

        return is_json({text, static_cast<size_t>(p - text)})
               || refuse("it is not JSON, even with a value for each variable",
                         view(given_));
    }

    /* `at` is a part of the template, of which little is quoted. */
    bool refuse(const char *what, std::string_view at)
    {
        ngx_str_t quoted = str(at.substr(0, 64));

        ngx_conf_log_error(NGX_LOG_EMERG, cf_, 0,
                           "sliding_limit: invalid body template, %s: \"%V%s\"",
                           what, &quoted, at.size() > 64 ? "..." : "");
        return false;
    }

    ngx_conf_t *cf_;
    Body *body_;
    const ngx_str_t &given_;
    std::string_view rest_;
    bool is_quoted_ = false;
};

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

    return TemplateReader(cf, body, words[2]).read() ? body : nullptr;
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
