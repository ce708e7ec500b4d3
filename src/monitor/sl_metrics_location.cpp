#include "monitor/sl_metrics_location.h"

#include "base/sl_header.h"
#include "monitor/pure/sl_accept.h"
#include "monitor/sl_metrics_json.h"
#include "monitor/sl_metrics_page.h"
#include "monitor/sl_prometheus.h"
#include "request/sl_conf.h"

namespace sl {

namespace {

enum class Format { kPrometheus, kJson, kHtml, kUnknown };

struct FormatName {
    Format format;
    std::string_view name;
    std::string_view type;
};

/* Of those that a client likes alike it gets the first. */
constexpr FormatName kFormats[] = {
    {Format::kPrometheus, "prometheus", "text/plain"},
    {Format::kJson, "json", "application/json"},
    {Format::kHtml, "html", "text/html"},
};

Format format_for(ngx_http_request_t *r)
{
    ngx_str_t format = str("format");
    ngx_str_t asked;

    if (ngx_http_arg(r, format.data, format.len, &asked) == NGX_OK) {
        for (const FormatName &known : kFormats) {
            if (known.name == view(asked)) {
                return known.format;
            }
        }

        return Format::kUnknown;
    }

    Format best = Format::kPrometheus;
    unsigned most = 0;

    for (const FormatName &known : kFormats) {
        auto compare = [&](const ngx_table_elt_t &accept) {
            unsigned quality = accepted_quality(view(accept.value), known.type);

            if (quality > most) {
                best = known.format;
                most = quality;
            }
        };

        for_each_header(r->headers_in.headers, "accept", compare);
    }

    return best;
}

/* Sets `type` and `text` as they are to be sent, and returns the status. */
ngx_uint_t write_format(ngx_http_request_t *r, Format format, ngx_str_t *type,
                        Output &text)
{
    const MainConf &mcf = *main_conf(r);

    switch (format) {
    case Format::kPrometheus:
        *type = ngx_string("text/plain; version=0.0.4; charset=utf-8");
        write_prometheus(mcf, text);
        break;

    case Format::kJson:
        *type = ngx_string("application/json");
        write_json(mcf, static_cast<KeysShown>(location_conf(r)->keys_shown),
                   text);
        break;

    case Format::kHtml:
        *type = ngx_string("text/html; charset=utf-8");
        write_page(text);
        break;

    case Format::kUnknown:
        *type = ngx_string("text/plain; charset=utf-8");
        text << "unknown format, must be html, json or prometheus\n";
        return NGX_HTTP_BAD_REQUEST;
    }

    return NGX_HTTP_OK;
}

bool set_headers(ngx_http_request_t *r, Format format)
{
    return set_header(r, "Cache-Control", "no-store")
           && set_header(r, "X-Content-Type-Options", "nosniff")
           && set_header(r, "Vary", "Accept")
           && (format != Format::kHtml
               || (set_header(r, "Content-Security-Policy",
                              view(main_conf(r)->page_policy))
                   && set_header(r, "Referrer-Policy", "no-referrer")));
}

}  // namespace

ngx_int_t metrics_handler(ngx_http_request_t *r) noexcept
{
    if (!(r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD))) {
        return set_header(r, "Allow", "GET, HEAD")
                   ? NGX_HTTP_NOT_ALLOWED
                   : NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_int_t rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    Format format = format_for(r);
    Output text(r->pool);
    ngx_str_t type;

    r->headers_out.status = write_format(r, format, &type, text);
    r->headers_out.content_type = type;
    /* without parameters: gzip_types and others compare the type alone */
    r->headers_out.content_type_len = ngx_min(view(type).find(';'), type.len);
    r->headers_out.content_length_n = text.size();

    if (!text.is_complete() || !set_headers(r, format)) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    return ngx_http_output_filter(r, text.chain(r == r->main));
}

}  // namespace sl
