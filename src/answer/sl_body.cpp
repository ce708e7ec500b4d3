#include "answer/sl_body.h"

#include "base/pure/sl_escape.h"
#include "base/pure/sl_json.h"
#include "base/pure/sl_words.h"

namespace sl {

namespace {

/* What the variable holds now; empty if it does not exist. */
bool get_value(ngx_http_request_t *r, ngx_int_t variable, ngx_str_t *value)
{
    ngx_http_variable_value_t *v =
        ngx_http_get_flushed_variable(r, static_cast<ngx_uint_t>(variable));

    if (v == nullptr) {
        return false;
    }

    if (!v->not_found) {
        *value = {v->len, v->data};
    }

    return true;
}

/* In JSON outside of quotes: always a value, whatever the variable holds. */
char *write_json_value(std::string_view value, char *to)
{
    if (value.empty()) {
        return append(to, kNull);
    }

    if (is_json_number(value) || value == "true" || value == "false") {
        return append(to, value);
    }

    *to++ = '"';
    to = escape_json(value, to);
    *to++ = '"';

    return to;
}

char *write_value(const Body &body, const BodyPart &part,
                  std::string_view value, char *to)
{
    switch (body.escape) {
    case Body::Escape::kJson:
        return part.is_quoted ? escape_json(value, to)
                              : write_json_value(value, to);
    case Body::Escape::kHtml:
        return escape_html(value, to);
    case Body::Escape::kNone:
        break;
    }

    return append(to, value);
}

}  // namespace

bool render_template(ngx_http_request_t *r, const Body &body,
                     ngx_str_t *text) noexcept
{
    constexpr size_t kQuotesOrNull = 4;

    auto *parts = static_cast<const BodyPart *>(body.parts->elts);
    auto *values = static_cast<ngx_str_t *>(
        ngx_pcalloc(r->pool, body.parts->nelts * sizeof(ngx_str_t)));
    size_t size = 0;

    if (values == nullptr) {
        return false;
    }

    for (ngx_uint_t i = 0; i < body.parts->nelts; i++) {
        if (parts[i].variable != NGX_ERROR
            && !get_value(r, parts[i].variable, &values[i]))
        {
            return false;
        }

        size +=
            parts[i].text.len + kQuotesOrNull + values[i].len * kLongestEscape;
    }

    auto *data = static_cast<char *>(ngx_pnalloc(r->pool, size));

    if (data == nullptr) {
        return false;
    }

    char *p = data;

    for (ngx_uint_t i = 0; i < body.parts->nelts; i++) {
        p = append(p, view(parts[i].text));

        if (parts[i].variable != NGX_ERROR) {
            p = write_value(body, parts[i], view(values[i]), p);
        }
    }

    *text = str({data, static_cast<size_t>(p - data)});

    return true;
}

}  // namespace sl
