#include "answer/sl_response.h"

#include "answer/sl_body.h"
#include "base/pure/sl_number.h"
#include "base/sl_header.h"
#include "store/pure/sl_zone_name.h"

namespace sl {

namespace {

ngx_http_output_header_filter_pt next_header_filter;
ngx_http_output_header_filter_pt next_last_header_filter;

constexpr std::string_view kLimit = "X-RateLimit-Limit";
constexpr std::string_view kRemaining = "X-RateLimit-Remaining";
constexpr std::string_view kReset = "X-RateLimit-Reset";
constexpr std::string_view kRetryAfter = "Retry-After";
constexpr std::string_view kCacheControl = "Cache-Control";
constexpr std::string_view kExpires = "Expires";
constexpr std::string_view kAccelExpires = "X-Accel-Expires";
constexpr std::string_view kCdnCacheControl = "CDN-Cache-Control";
constexpr std::string_view kSurrogateControl = "Surrogate-Control";
constexpr std::string_view kPolicy = "RateLimit-Policy";
constexpr std::string_view kService = "RateLimit";

/* What is left of the wait: the answer may have taken its time since then. */
int64_t wait_left_us(const AppliedLimit &applied)
{
    return applied.verdict.state.wait_us
           - static_cast<int64_t>(ngx_current_msec - applied.at) * 1000;
}

bool has_wait(const AppliedLimit &applied)
{
    return applied.verdict.known && applied.verdict.state.wait_us != kNoWait;
}

/* A negative value is not known, and not set. */
bool set_number(ngx_http_request_t *r, std::string_view name, int64_t value)
{
    if (value < 0) {
        return true;
    }

    auto *text = static_cast<char *>(ngx_pnalloc(r->pool, kMaxDigits));

    if (text == nullptr) {
        return false;
    }

    char *end = write_number(text, value);

    return set_header(r, name, {text, static_cast<size_t>(end - text)});
}

/* Where the store gave no answer only the limit itself can be told. */
bool set_x_headers(ngx_http_request_t *r, const AppliedLimit &shown)
{
    remove_header(r, kLimit);
    remove_header(r, kRemaining);
    remove_header(r, kReset);

    return set_number(r, kLimit, shown.verdict.max)
           && set_number(r, kRemaining, remaining(shown.verdict))
           && set_number(r, kReset, reset_value(r, shown));
}

/* A window in RateLimit-Policy: whole seconds are all it can say. */
int64_t window_seconds(const AppliedLimit &applied)
{
    return static_cast<int64_t>((applied.limit->zone->window + 999) / 1000);
}

/* Of all limits that applied, the one that is shown elsewhere first. */
bool set_ietf_headers(ngx_http_request_t *r, const Check &check)
{
    constexpr size_t kMaxItem =
        sizeof(", \"\";q=;w=") + kMaxZoneName + 2 * NGX_INT64_LEN;

    remove_header(r, kPolicy);
    remove_header(r, kService);

    size_t room = check.limit_count() * kMaxItem;
    auto *policies = static_cast<u_char *>(ngx_pnalloc(r->pool, 2 * room));

    if (policies == nullptr) {
        return false;
    }

    u_char *services = policies + room;
    u_char *policy = policies;
    u_char *service = services;

    auto add = [&](const AppliedLimit &applied) {
        const ngx_str_t *name = &applied.limit->zone->name;
        int64_t left = remaining(applied.verdict);
        int64_t seconds = wait_seconds(applied);

        policy = ngx_sprintf(policy, "%s\"%V\";q=%L;w=%L",
                             policy == policies ? "" : ", ", name,
                             applied.verdict.max, window_seconds(applied));

        if (left >= 0) {
            service = ngx_sprintf(service, "%s\"%V\";r=%L",
                                  service == services ? "" : ", ", name, left);
        }

        if (left >= 0 && seconds >= 0) {
            service = ngx_sprintf(service, ";t=%L", seconds);
        }
    };

    const AppliedLimit *shown = check.shown();

    add(*shown);

    for (size_t i = 0; i < check.limit_count(); i++) {
        if (&check.limits()[i] != shown) {
            add(check.limits()[i]);
        }
    }

    auto text = [](u_char *from, u_char *to) {
        return std::string_view{reinterpret_cast<char *>(from),
                                static_cast<size_t>(to - from)};
    };

    return set_header(r, kPolicy, text(policies, policy))
           && (service == services
               || set_header(r, kService, text(services, service)));
}

bool set_headers(ngx_http_request_t *r, const Check &check)
{
    ngx_uint_t styles = location_conf(r)->headers;
    int64_t retry_after = retry_after_value(check);

    if (retry_after >= 0) {
        remove_header(r, kRetryAfter);
    }

    return (!(styles & kXHeaders) || set_x_headers(r, *check.shown()))
           && (!(styles & kIetfHeaders) || set_ietf_headers(r, check))
           && set_number(r, kRetryAfter, retry_after);
}

/*
 * What one client was refused with must not be handed to another by a cache,
 * whatever the application, add_header or expires say of the error page.
 */
bool forbid_caching(ngx_http_request_t *r)
{
    /* some caches obey one of the last three before Cache-Control */
    for (std::string_view name : {kCacheControl, kExpires, kAccelExpires,
                                  kCdnCacheControl, kSurrogateControl}) {
        remove_header(r, name);
    }

    return set_header(r, kCacheControl, "no-store");
}

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

    ngx_str_t wait_text = {static_cast<size_t>(end - wait), wait};

    ngx_str_t store = str(shown->decided_by);

    ngx_log_error(level, r->connection->log, 0,
                  "sliding_limit: refused by zone \"%V\", max %L in %M ms%V, "
                  "store: %V",
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

/* The names of the limits that refuse, as a JSON array's content. */
u_char *write_violated(u_char *p, const Check &check)
{
    const char *separator = "";

    for (size_t i = 0; i < check.limit_count(); i++) {
        const AppliedLimit &applied = check.limits()[i];

        if (is_refusal(applied.verdict)) {
            p = ngx_sprintf(p, "%s\"%V\"", separator,
                            &applied.limit->zone->name);
            separator = ",";
        }
    }

    return p;
}

/* RFC 9457, with the types that the draft of the IETF headers registers. */
u_char *write_problem(u_char *p, const Check &check, ngx_uint_t status)
{
    bool rejected = check.outcome() == Outcome::kRejected;

    p = ngx_sprintf(
        p,
        "{\"type\":\"https://iana.org/assignments/http-problem-types#%s\","
        "\"title\":\"%s\",\"status\":%ui",
        rejected ? "quota-exceeded" : "temporary-reduced-capacity",
        rejected ? "Request cannot be satisfied as assigned quota has been "
                   "exceeded"
                 : "Request cannot be satisfied due to temporary server "
                   "capacity constraints",
        status);

    if (rejected) {
        p = ngx_sprintf(p, ",\"violated-policies\":[");
        p = write_violated(p, check);
        p = ngx_sprintf(p, "]");
    }

    return ngx_sprintf(p, "}");
}

u_char *write_text(u_char *p, const Check &check)
{
    int64_t seconds = retry_after_value(check);

    if (check.outcome() != Outcome::kRejected) {
        return ngx_sprintf(p, "Service unavailable, try again later.");
    }

    if (seconds < 0) {
        return ngx_sprintf(p, "Too many requests.");
    }

    return ngx_sprintf(p, "Too many requests, try again in %L second%s.",
                       seconds, seconds == 1 ? "" : "s");
}

u_char *write_json(u_char *p, const Check &check, ngx_uint_t status)
{
    auto append = [&p](std::string_view text) {
        p = ngx_cpymem(p, text.data(), text.size());
    };

    append("{\"status\":");
    p = reinterpret_cast<u_char *>(write_number(reinterpret_cast<char *>(p),
                                                static_cast<int64_t>(status)));
    append(",\"code\":\"rate_limit:");
    append(check.outcome() == Outcome::kRejected ? "exceeded" : "unavailable");
    append("\"}");

    return p;
}

/* What a body has at most, but for the names of limits. */
constexpr size_t kMaxFixed = 300;

/* False: out of memory, or a variable could not be evaluated. */
bool write_body(ngx_http_request_t *r, const Check &check, ngx_uint_t status,
                ngx_str_t *type, ngx_str_t *text)
{
    constexpr size_t kMaxName = kMaxZoneName + sizeof(",\"\"");

    const Body &body = *location_conf(r)->body;

    if (body.kind == Body::Kind::kTemplate) {
        *type = body.type;
        return render_template(r, body, text);
    }

    text->data = static_cast<u_char *>(
        ngx_pnalloc(r->pool, kMaxFixed + check.limit_count() * kMaxName));

    if (text->data == nullptr) {
        return false;
    }

    u_char *end = text->data;

    switch (body.kind) {
    case Body::Kind::kProblem:
        *type = ngx_string("application/problem+json");
        end = write_problem(end, check, status);
        break;

    case Body::Kind::kText:
        *type = ngx_string("text/plain");
        end = ngx_sprintf(write_text(end, check), "\n");
        break;

    case Body::Kind::kJson:
    case Body::Kind::kGrpc:
    case Body::Kind::kTemplate:
        *type = ngx_string("application/json");
        end = write_json(end, check, status);
        break;
    }

    text->len = static_cast<size_t>(end - text->data);

    return true;
}

ngx_int_t send(ngx_http_request_t *r, ngx_uint_t status, ngx_str_t type,
               const ngx_str_t &text)
{
    ngx_http_complex_value_t body;
    ngx_memzero(&body, sizeof(body));
    body.value = text;

    /* the body of a refused request is not worth a "100 Continue" */
    r->expect_tested = 1;

    /* inside an error page nginx would send the status of that error */
    r->err_status = status;

    return ngx_http_send_response(r, status, &type, &body);
}

ngx_int_t send_body(ngx_http_request_t *r, const Check &check,
                    ngx_uint_t status)
{
    ngx_str_t type;
    ngx_str_t text;

    return write_body(r, check, status, &type, &text)
               ? send(r, status, type, text)
               : NGX_ERROR;
}

/*
 * To gRPC every answer is a 200. An error stands in the headers, as the only
 * thing there is: it calls that "Trailers-Only".
 */
ngx_int_t send_grpc(ngx_http_request_t *r, const Check &check)
{
    constexpr std::string_view kResourceExhausted = "8";
    constexpr std::string_view kUnavailable = "14";

    auto *message = static_cast<u_char *>(ngx_pnalloc(r->pool, kMaxFixed));

    if (message == nullptr) {
        return NGX_ERROR;
    }

    /* has nothing that gRPC would have percent-encoded */
    auto size = static_cast<size_t>(write_text(message, check) - message);

    if (!set_header(r, "grpc-status",
                    check.outcome() == Outcome::kRejected ? kResourceExhausted
                                                          : kUnavailable)
        || !set_header(r, "grpc-message",
                       {reinterpret_cast<char *>(message), size}))
    {
        return NGX_ERROR;
    }

    /* HTTP/1 needs the end of a body if another filter has announced one */
    if (r->http_version >= NGX_HTTP_VERSION_20) {
        r->header_only = 1;
    }

    /* a 200 could otherwise become a 304 or a 412 */
    r->disable_not_modified = 1;

    return send(r, NGX_HTTP_OK, ngx_string("application/grpc"),
                ngx_null_string);
}

}  // namespace

int64_t wait_seconds(const AppliedLimit &applied) noexcept
{
    return has_wait(applied) ? seconds_to_wait(wait_left_us(applied)) : -1;
}

int64_t reset_value(ngx_http_request_t *r, const AppliedLimit &applied) noexcept
{
    if (location_conf(r)->reset == kDelta || !has_wait(applied)) {
        return wait_seconds(applied);
    }

    ngx_time_t *now = ngx_timeofday();

    return now->sec
           + seconds_to_wait(wait_left_us(applied)
                             + static_cast<int64_t>(now->msec) * 1000);
}

int64_t retry_after_value(const Check &check) noexcept
{
    return check.outcome() == Outcome::kRejected ? wait_seconds(*check.shown())
                                                 : -1;
}

/*
 * The request is always ended here: as a return code of an access handler 401
 * and 403 would be taken for a matter of "satisfy".
 */
ngx_int_t refuse(ngx_http_request_t *r, const Check &check) noexcept
{
    ngx_uint_t status = check.outcome() == Outcome::kRejected
                            ? location_conf(r)->status
                            : NGX_HTTP_SERVICE_UNAVAILABLE;

    log_refusal(r, check);

    if (has_error_page(r, status) || is_silent(status)) {
        ngx_http_finalize_request(r, static_cast<ngx_int_t>(status));
        return NGX_DONE;
    }

    bool is_grpc = location_conf(r)->body->kind == Body::Kind::kGrpc;

    ngx_http_finalize_request(r, is_grpc ? send_grpc(r, check)
                                         : send_body(r, check, status));
    return NGX_DONE;
}

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
