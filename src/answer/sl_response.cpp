#include "answer/sl_response.h"

#include "answer/sl_headers.h"
#include "answer/sl_refusal.h"

namespace sl {

namespace {

ngx_http_output_header_filter_pt next_header_filter;
ngx_http_output_header_filter_pt next_last_header_filter;

/* Of this answer, not of those to subrequests that become a part of it. */
Check *check_of_answer(ngx_http_request_t *r)
{
    return r == r->main ? Check::find(r) : nullptr;
}

/*
 * A filter, because headers set in the access phase would not survive: errors
 * and upstream answers start with a clean list.
 */
ngx_int_t header_filter(ngx_http_request_t *r) noexcept
{
    Check *check = check_of_answer(r);

    if (check != nullptr) {
        check->foresee(r->headers_out.status);

        if (check->shown() != nullptr && !set_headers(r, *check)) {
            return NGX_ERROR;
        }
    }

    return next_header_filter(r);
}

/*
 * By now no filter makes another status of it, as that of ranges does, nor
 * holds the header back to wait for the body, as that of images does; and
 * add_header and expires have had their say.
 */
ngx_int_t last_header_filter(ngx_http_request_t *r) noexcept
{
    Check *check = check_of_answer(r);

    /* no later: the client's next request may follow this answer */
    if (check != nullptr && check->settle(r->headers_out.status)
        && !set_headers(r, *check))
    {
        return NGX_ERROR;
    }

    if (check != nullptr && check->is_refused() && !forbid_caching(r)) {
        return NGX_ERROR;
    }

    return next_last_header_filter(r);
}

}  // namespace

void install_header_filter() noexcept
{
    next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = header_filter;
}

void install_last_header_filter() noexcept
{
    next_last_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = last_header_filter;
}

}  // namespace sl
