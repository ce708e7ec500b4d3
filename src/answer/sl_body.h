/*
 * The body of a refusal: one of ours (for gRPC: none), or a template of the
 * user's, in which the values of variables are escaped as its media type
 * demands.
 */

#pragma once

#include "base/sl_nginx.h"

namespace sl {

/* What stands for a variable that holds nothing, outside of quotes. */
constexpr std::string_view kNull = "null";

/* Text as it stands, and the variable that follows it. */
struct BodyPart {
    ngx_str_t text;
    ngx_int_t variable; /* index, or NGX_ERROR: none follows */
    bool is_quoted;     /* it stands in a JSON string */
};

struct Body {
    enum class Kind { kJson, kProblem, kText, kGrpc, kTemplate };
    enum class Escape { kNone, kJson, kHtml };

    Kind kind;

    /* The rest is for templates only. */
    ngx_str_t type;
    Escape escape;
    ngx_array_t *parts; /* BodyPart */
};

/* False: out of memory, or a variable could not be evaluated. */
bool render_template(ngx_http_request_t *r, const Body &body,
                     ngx_str_t *text) noexcept;

}  // namespace sl
