#include "monitor/sl_metrics_location.h"

#include "base/sl_header.h"
#include "monitor/pure/sl_accept.h"
#include "monitor/sl_client_location.h"
#include "monitor/sl_metrics_json.h"
#include "monitor/sl_metrics_page.h"
#include "monitor/sl_prometheus.h"
#include "monitor/sl_response.h"
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
ngx_uint_t write_format(ngx_http_request_t *r, Format format,
                        std::string_view *type, Output &text)
{
    const MainConf &mcf = *main_conf(r);

    switch (format) {
    case Format::kPrometheus:
        *type = "text/plain; version=0.0.4; charset=utf-8";
        write_prometheus(mcf, text);
        break;

    case Format::kJson:
        *type = kJsonType;
        write_json(mcf, *location_conf(r), text);
        break;

    case Format::kHtml:
        *type = "text/html; charset=utf-8";
        write_page(text);
        break;

    case Format::kUnknown:
        *type = "text/plain; charset=utf-8";
        text << "unknown format, must be html, json or prometheus\n";
        return NGX_HTTP_BAD_REQUEST;
    }

    return NGX_HTTP_OK;
}

bool set_headers(ngx_http_request_t *r, Format format)
{
    return set_header(r, "Vary", "Accept")
           && (format != Format::kHtml
               || (set_header(r, "Content-Security-Policy",
                              view(main_conf(r)->page_policy))
                   && set_header(r, "Referrer-Policy", "no-referrer")));
}

ngx_int_t show_metrics(ngx_http_request_t *r)
{
    ngx_int_t rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    Format format = format_for(r);
    Output text(r->pool);
    std::string_view type;
    ngx_uint_t status = write_format(r, format, &type, text);

    return set_headers(r, format) ? send_text(r, status, type, text)
                                  : NGX_HTTP_INTERNAL_SERVER_ERROR;
}

}  // namespace

ngx_int_t metrics_handler(ngx_http_request_t *r) noexcept
{
    return is_about_clients(r) ? client_handler(r) : show_metrics(r);
}

}  // namespace sl
