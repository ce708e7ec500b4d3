#include "answer/sl_body.h"

#include "answer/sl_shown_values.h"
#include "base/pure/sl_number.h"
#include "base/pure/sl_words.h"
#include "base/sl_header.h"
#include "store/pure/sl_zone_name.h"

namespace sl {

namespace {

/* A body of ours is no longer than this, but for the names of limits. */
constexpr size_t kMaxFixed = 300;

/* False if there is no memory. */
bool allocate(ngx_http_request_t *r, size_t size, u_char **to)
{
    *to = static_cast<u_char *>(ngx_pnalloc(r->pool, size));

    return *to != nullptr;
}

/* How our bodies tell of a refusal. */
struct Wording {
    std::string_view code; /* after "rate_limit:" */

    /* As the draft of the IETF headers registers them with IANA. */
    const char *problem_type;
    const char *problem_title;

    const char *sentence; /* until when to wait follows */
    std::string_view grpc_status;
};

constexpr std::string_view kGrpcResourceExhausted = "8";
constexpr std::string_view kGrpcUnavailable = "14";

constexpr Wording kExceeded = {"exceeded", "quota-exceeded", "Quota Exceeded",
                               "Too many requests", kGrpcResourceExhausted};

constexpr Wording kBanned = {"banned", "abnormal-usage-detected",
                             "Abnormal Usage Detected", "You are banned",
                             kGrpcResourceExhausted};

constexpr Wording kUnavailable = {"unavailable", "temporary-reduced-capacity",
                                  "Temporary Reduced Capacity",
                                  "Service unavailable", kGrpcUnavailable};

const Wording &wording_of(const Check &check)
{
    switch (check.outcome()) {
    case Outcome::kRejected:
        return kExceeded;
    case Outcome::kBanned:
        return kBanned;
    default:
        return kUnavailable;
    }
}

bool write_json(ngx_http_request_t *r, const Body &, const Check &check,
                BodyAnswer *answer)
{
    u_char *text;

    if (!allocate(r, kMaxFixed, &text)) {
        return false;
    }

    char *p = append(chars(text), "{\"status\":");
    p = write_number(p, static_cast<int64_t>(answer->status));
    p = append(p, ",\"code\":\"rate_limit:");
    p = append(p, wording_of(check).code);
    p = append(p, "\"}");

    answer->text = str(view(text, bytes(p)));

    return true;
}

/* Writes the names of the limits that refuse, as a JSON array's content. */
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

/* The format of RFC 9457. */
bool write_problem(ngx_http_request_t *r, const Body &, const Check &check,
                   BodyAnswer *answer)
{
    constexpr size_t kMaxName = kMaxZoneName + sizeof(",\"\"");

    const Wording &wording = wording_of(check);
    u_char *text;

    if (!allocate(r, kMaxFixed + check.limit_count() * kMaxName, &text)) {
        return false;
    }

    u_char *p = ngx_sprintf(
        text,
        "{\"type\":\"https://iana.org/assignments/http-problem-types#%s\","
        "\"title\":\"%s\",\"status\":%ui",
        wording.problem_type, wording.problem_title, answer->status);

    if (is_rejection(check.outcome())) {
        p = ngx_sprintf(p, ",\"violated-policies\":[");
        p = write_violated(p, check);
        p = ngx_sprintf(p, "]");
    }

    answer->text = str(view(text, ngx_sprintf(p, "}")));

    return true;
}

u_char *write_sentence(u_char *p, const Check &check)
{
    int64_t seconds = retry_after_value(check);

    p = ngx_sprintf(p, "%s", wording_of(check).sentence);

    if (!is_rejection(check.outcome())) {
        return ngx_sprintf(p, ", try again later.");
    }

    if (seconds < 0) {
        return ngx_sprintf(p, ".");
    }

    return ngx_sprintf(p, ", try again in %L second%s.", seconds,
                       seconds == 1 ? "" : "s");
}

bool write_text(ngx_http_request_t *r, const Body &, const Check &check,
                BodyAnswer *answer)
{
    u_char *text;

    if (!allocate(r, kMaxFixed, &text)) {
        return false;
    }

    u_char *end = ngx_sprintf(write_sentence(text, check), "\n");

    answer->text = str(view(text, end));

    return true;
}

/*
 * To gRPC every answer is a 200. An error stands in the headers, and nothing
 * follows them: gRPC calls that "Trailers-Only".
 */
bool write_grpc(ngx_http_request_t *r, const Body &, const Check &check,
                BodyAnswer *answer)
{
    u_char *message;

    answer->status = NGX_HTTP_OK;

    /* a 200 could otherwise become a 304 or a 412 */
    r->disable_not_modified = 1;

    /* HTTP/1 needs the end of a body if another filter has announced one */
    if (r->http_version >= NGX_HTTP_VERSION_20) {
        r->header_only = 1;
    }

    if (!allocate(r, kMaxFixed, &message)) {
        return false;
    }

    /* the sentence has nothing that gRPC would have percent-encoded */
    return set_header(r, "grpc-status", wording_of(check).grpc_status)
           && set_header(r, "grpc-message",
                         view(message, write_sentence(message, check)));
}

const Body kBodies[] = {
    {"json", ngx_string("application/json"), write_json},
    {"problem", ngx_string("application/problem+json"), write_problem},
    {"text", ngx_string("text/plain"), write_text},
    {"grpc", ngx_string("application/grpc"), write_grpc},
};

/* Gets what the variable holds now, which is nothing if it does not exist. */
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

}  // namespace

bool write_template(ngx_http_request_t *r, const Body &body, const Check &,
                    BodyAnswer *answer) noexcept
{
    auto parts = elements<const BodyPart>(*body.parts);
    auto *values = static_cast<ngx_str_t *>(
        ngx_pcalloc(r->pool, parts.size() * sizeof(ngx_str_t)));
    size_t size = 0;

    if (values == nullptr) {
        return false;
    }

    for (size_t i = 0; i < parts.size(); i++) {
        if (parts[i].variable != NGX_ERROR
            && !get_value(r, parts[i].variable, &values[i]))
        {
            return false;
        }

        size += parts[i].text.len + room_for_value(values[i].len);
    }

    u_char *text;

    if (!allocate(r, size, &text)) {
        return false;
    }

    char *p = chars(text);

    for (size_t i = 0; i < parts.size(); i++) {
        p = append(p, view(parts[i].text));

        if (parts[i].variable != NGX_ERROR) {
            p = write_value(body.escape, parts[i].is_quoted, view(values[i]),
                            p);
        }
    }

    answer->text = str(view(text, bytes(p)));

    return true;
}

const Body *find_body(std::string_view name) noexcept
{
    for (const Body &body : kBodies) {
        if (body.name == name) {
            return &body;
        }
    }

    return nullptr;
}

}  // namespace sl
