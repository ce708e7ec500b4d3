/*
 * The body of a refusal: one of ours, or a template of the user's, in which the
 * values of variables are escaped as its media type demands.
 *
 * A new format is a function in sl_body.cpp and a line in the table there;
 * docs/directives.md and the message in sl_config_body.cpp name it.
 */

#pragma once

#include "answer/pure/sl_body_template.h"
#include "base/sl_nginx.h"
#include "request/sl_check.h"

namespace sl {

/* What is sent to the client. */
struct BodyAnswer {
    ngx_uint_t status;
    ngx_str_t type;
    ngx_str_t text;
};

/* Text as it stands, and the variable that follows it. */
struct BodyPart {
    ngx_str_t text;
    ngx_int_t variable; /* index, or NGX_ERROR: none follows */
    bool is_quoted;     /* it stands in a JSON string */
};

struct Body {
    /*
     * Writes the text for this refusal; status and type may become others.
     * False: out of memory, or a variable could not be evaluated.
     */
    using Write = bool (*)(ngx_http_request_t *r, const Body &body,
                           const Check &check, BodyAnswer *answer);

    std::string_view name; /* in the configuration; of a template empty */
    ngx_str_t type;
    Write write;

    /* The rest is for templates only. */
    BodyEscape escape = BodyEscape::kNone;
    ngx_array_t *parts = nullptr; /* BodyPart */
};

/* Finds the body of ours that has this name; nullptr: there is none. */
const Body *find_body(std::string_view name) noexcept;

/* This is Body::write of a template. */
bool write_template(ngx_http_request_t *r, const Body &body, const Check &check,
                    BodyAnswer *answer) noexcept;

}  // namespace sl
