#include "sl_response.h"

namespace sl {

namespace {

ngx_http_output_header_filter_pt next_header_filter;

constexpr std::string_view kLimit = "X-RateLimit-Limit";
constexpr std::string_view kRemaining = "X-RateLimit-Remaining";
constexpr std::string_view kReset = "X-RateLimit-Reset";
constexpr std::string_view kRetryAfter = "Retry-After";

/* Takes out what the application or an earlier stage has set. */
void remove_header(ngx_http_request_t *r, std::string_view name)
{
    ngx_list_part_t *part = &r->headers_out.headers.part;

    for (; part != nullptr; part = part->next) {
        auto *header = static_cast<ngx_table_elt_t *>(part->elts);

        for (ngx_uint_t i = 0; i < part->nelts; i++) {
            if (header[i].key.len == name.size()
                && ngx_strncasecmp(header[i].key.data, str(name).data,
                                   name.size())
                       == 0)
            {
                header[i].hash = 0;
            }
        }
    }
}

bool set_header(ngx_http_request_t *r, std::string_view name, int64_t value)
{
    auto *text = static_cast<u_char *>(ngx_pnalloc(r->pool, NGX_INT64_LEN));

    if (text == nullptr) {
        return false;
    }

    auto *header =
        static_cast<ngx_table_elt_t *>(ngx_list_push(&r->headers_out.headers));

    if (header == nullptr) {
        return false;
    }

    header->hash = 1;
    header->key = str(name);
    header->lowcase_key = nullptr;
    header->value.data = text;
    header->value.len =
        static_cast<size_t>(ngx_sprintf(text, "%L", value) - text);
#if (nginx_version >= 1023000)
    header->next = nullptr;
#endif

    return true;
}

/* Where the store gave no answer only the limit itself can be told. */
bool set_headers(ngx_http_request_t *r, const Check &check)
{
    const ShownLimit &shown = check.shown();

    remove_header(r, kLimit);
    remove_header(r, kRemaining);
    remove_header(r, kReset);

    if (!set_header(r, kLimit, shown.limit->max)) {
        return false;
    }

    if (!shown.known) {
        return true;
    }

    int64_t reset = reset_value(r, check);
    int64_t retry_after = retry_after_value(check);

    if (!set_header(r, kRemaining,
                    remaining(shown.limit->max, shown.state.used))
        || (reset >= 0 && !set_header(r, kReset, reset)))
    {
        return false;
    }

    if (retry_after >= 0) {
        remove_header(r, kRetryAfter);
        return set_header(r, kRetryAfter, retry_after);
    }

    return true;
}

/*
 * A filter, because headers set in the access phase would not survive: errors
 * and upstream answers start with a clean list.
 */
ngx_int_t header_filter(ngx_http_request_t *r) noexcept
{
    if (r == r->main) {
        Check *check = Check::find(r);

        if (check != nullptr && check->shown().limit != nullptr
            && !set_headers(r, *check))
        {
            return NGX_ERROR;
        }
    }

    return next_header_filter(r);
}

/* The answer may have taken its time since the store spoke. */
int64_t wait_left_us(const ShownLimit &shown)
{
    return shown.state.wait_us
           - static_cast<int64_t>(ngx_current_msec - shown.at) * 1000;
}

void log_refusal(ngx_http_request_t *r, const Check &check)
{
    const ShownLimit &shown = check.shown();

    if (check.outcome() == Outcome::kFailedClosed || shown.limit == nullptr) {
        return;
    }

    u_char wait[sizeof(", retry after  s") + NGX_INT64_LEN];
    u_char *end = wait;
    int64_t seconds = retry_after_value(check);

    if (seconds >= 0) {
        end = ngx_snprintf(wait, sizeof(wait), ", retry after %L s", seconds);
    }

    ngx_str_t wait_text = {static_cast<size_t>(end - wait), wait};

    ngx_log_error(location_conf(r)->log_level, r->connection->log, 0,
                  "sliding_limit: refused by zone \"%V\", max %L in %M ms%V",
                  &shown.limit->zone->name, shown.limit->max,
                  shown.limit->zone->window, &wait_text);
}

bool has_error_page(ngx_http_request_t *r, ngx_uint_t status)
{
    auto *clcf = static_cast<ngx_http_core_loc_conf_t *>(
        ngx_http_get_module_loc_conf(r, ngx_http_core_module));

    if (r->error_page || clcf->error_pages == nullptr || r->uri_changes == 0) {
        return false;
    }

    auto *page = static_cast<ngx_http_err_page_t *>(clcf->error_pages->elts);

    for (ngx_uint_t i = 0; i < clcf->error_pages->nelts; i++) {
        if (page[i].status == static_cast<ngx_int_t>(status)) {
            return true;
        }
    }

    return false;
}

/* nginx's own codes for "say nothing and hang up". */
bool is_silent(ngx_uint_t status)
{
    return status == NGX_HTTP_CLOSE || status == NGX_HTTP_CLIENT_CLOSED_REQUEST;
}

ngx_int_t send_body(ngx_http_request_t *r, ngx_uint_t status,
                    std::string_view code)
{
    constexpr size_t kMaxBody = 64;

    auto *text = static_cast<u_char *>(ngx_pnalloc(r->pool, kMaxBody));

    if (text == nullptr) {
        return NGX_ERROR;
    }

    ngx_str_t code_text = str(code);
    u_char *end = ngx_snprintf(
        text, kMaxBody, "{\"status\":%ui,\"code\":\"%V\"}", status, &code_text);

    ngx_http_complex_value_t body;
    ngx_memzero(&body, sizeof(body));
    body.value.data = text;
    body.value.len = static_cast<size_t>(end - text);

    ngx_str_t type = ngx_string("application/json");

    /* the body of a refused request is not worth a "100 Continue" */
    r->expect_tested = 1;

    /* inside an error page nginx would send the status of that error */
    r->err_status = status;

    return ngx_http_send_response(r, status, &type, &body);
}

}  // namespace

int64_t reset_value(ngx_http_request_t *r, const Check &check) noexcept
{
    const ShownLimit &shown = check.shown();

    if (!shown.known || shown.state.wait_us == kWaitingIsNoUse) {
        return -1;
    }

    int64_t left = wait_left_us(shown);

    if (location_conf(r)->reset == kDelta) {
        return seconds_to_wait(left);
    }

    ngx_time_t *now = ngx_timeofday();

    return now->sec
           + seconds_to_wait(left + static_cast<int64_t>(now->msec) * 1000);
}

int64_t retry_after_value(const Check &check) noexcept
{
    const ShownLimit &shown = check.shown();

    if (check.outcome() != Outcome::kRejected
        || shown.state.wait_us == kWaitingIsNoUse)
    {
        return -1;
    }

    return seconds_to_wait(wait_left_us(shown));
}

/*
 * The request is always ended here: as a return code of an access handler 401
 * and 403 would be taken for a matter of "satisfy".
 */
ngx_int_t refuse(ngx_http_request_t *r, const Check &check) noexcept
{
    bool rejected = check.outcome() == Outcome::kRejected;
    ngx_uint_t status =
        rejected ? location_conf(r)->status : NGX_HTTP_SERVICE_UNAVAILABLE;

    log_refusal(r, check);

    if (has_error_page(r, status) || is_silent(status)) {
        ngx_http_finalize_request(r, static_cast<ngx_int_t>(status));
        return NGX_DONE;
    }

    ngx_http_finalize_request(
        r,
        send_body(r, status,
                  rejected ? "rate_limit:exceeded" : "rate_limit:unavailable"));
    return NGX_DONE;
}

void install_header_filter() noexcept
{
    next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = header_filter;
}

}  // namespace sl
