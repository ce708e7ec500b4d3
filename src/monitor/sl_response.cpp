#include "monitor/sl_response.h"

#include "base/sl_header.h"

namespace sl {

ngx_int_t send_text(ngx_http_request_t *r, ngx_uint_t status,
                    std::string_view type, Output &text) noexcept
{
    r->headers_out.status = status;
    r->headers_out.content_type = str(type);
    /* without parameters: gzip_types and others compare the type alone */
    r->headers_out.content_type_len = ngx_min(type.find(';'), type.size());
    r->headers_out.content_length_n = text.size();

    if (!text.is_complete() || !set_header(r, "Cache-Control", "no-store")
        || !set_header(r, "X-Content-Type-Options", "nosniff"))
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_int_t rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    return ngx_http_output_filter(r, text.chain(r == r->main));
}

}  // namespace sl
