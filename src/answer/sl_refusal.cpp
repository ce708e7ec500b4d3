#include "answer/sl_refusal.h"

#include "answer/sl_body.h"
#include "answer/sl_shown_values.h"
#include "base/sl_header.h"

namespace sl {

namespace {

void log_refusal(ngx_http_request_t *r, const Check &check)
{
    const AppliedLimit *shown = check.shown();
    ngx_uint_t level = location_conf(r)->log_level;

    if (check.outcome() == Outcome::kFailedClosed || shown == nullptr
        || r->connection->log->log_level < level)
    {
        return;
    }

    u_char wait[sizeof(", retry after  s") + NGX_INT64_LEN];
    u_char *end = wait;
    int64_t seconds = retry_after_value(check);

    if (seconds >= 0) {
        end = ngx_snprintf(wait, sizeof(wait), ", retry after %L s", seconds);
    }

    ngx_str_t wait_text = str(view(wait, end));
    ngx_str_t store = str(shown->decided_by);

    ngx_log_error(level, r->connection->log, 0,
                  "sliding_limit: %s zone \"%V\", max %L in %M ms%V, "
                  "store: %V",
                  check.outcome() == Outcome::kBanned ? "banned in"
                                                      : "refused by",
                  &shown->limit->zone->name, shown->verdict.max,
                  shown->limit->zone->window, &wait_text, &store);
}

bool has_error_page(ngx_http_request_t *r, ngx_uint_t status)
{
    auto *clcf = static_cast<ngx_http_core_loc_conf_t *>(
        ngx_http_get_module_loc_conf(r, ngx_http_core_module));

    if (r->error_page || clcf->error_pages == nullptr || r->uri_changes == 0) {
        return false;
    }

    for (const auto &page : elements<ngx_http_err_page_t>(*clcf->error_pages)) {
        if (page.status == static_cast<ngx_int_t>(status)) {
            return true;
        }
    }

    return false;
}

/* These are nginx's own codes for "say nothing and hang up". */
bool is_silent(ngx_uint_t status)
{
    return status == NGX_HTTP_CLOSE || status == NGX_HTTP_CLIENT_CLOSED_REQUEST;
}

ngx_int_t send(ngx_http_request_t *r, const Check &check, ngx_uint_t status)
{
    const Body &body = *location_conf(r)->body;
    BodyAnswer answer = {status, body.type, ngx_null_string};

    /* nginx has a page of its own for every status */
    if (!body.write(r, body, check, &answer)) {
        return static_cast<ngx_int_t>(status);
    }

    ngx_http_complex_value_t value;
    ngx_memzero(&value, sizeof(value));
    value.value = answer.text;

    /* the body of a refused request is not worth a "100 Continue" */
    r->expect_tested = 1;

    /* inside an error page nginx would send the status of that error */
    r->err_status = answer.status;

    return ngx_http_send_response(r, answer.status, &answer.type, &value);
}

}  // namespace

/*
 * The request is always ended here: as a return code of an access handler 401
 * and 403 would be taken for a matter of "satisfy".
 */
ngx_int_t refuse(ngx_http_request_t *r, const Check &check) noexcept
{
    ngx_uint_t status = is_rejection(check.outcome())
                            ? location_conf(r)->status
                            : NGX_HTTP_SERVICE_UNAVAILABLE;

    log_refusal(r, check);

    ngx_http_finalize_request(r, has_error_page(r, status) || is_silent(status)
                                     ? static_cast<ngx_int_t>(status)
                                     : send(r, check, status));
    return NGX_DONE;
}

bool forbid_caching(ngx_http_request_t *r) noexcept
{
    constexpr std::string_view kCacheControl = "Cache-Control";

    /* some caches obey one of the last three before Cache-Control */
    constexpr std::string_view kObeyed[] = {
        kCacheControl, "Expires", "X-Accel-Expires", "CDN-Cache-Control",
        "Surrogate-Control"};

    for (std::string_view name : kObeyed) {
        remove_header(r, name);
    }

    return set_header(r, kCacheControl, "no-store");
}

}  // namespace sl
