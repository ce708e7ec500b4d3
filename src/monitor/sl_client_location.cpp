#include "monitor/sl_client_location.h"

#include "base/sl_header.h"
#include "monitor/pure/sl_client_query.h"
#include "monitor/pure/sl_own_page.h"
#include "monitor/sl_client_json.h"
#include "monitor/sl_operator_request.h"
#include "monitor/sl_own_host.h"

namespace sl {

namespace {

bool is_look(ngx_http_request_t *r)
{
    return r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD);
}

bool is_change(ngx_http_request_t *r)
{
    return r->method & (NGX_HTTP_PUT | NGX_HTTP_DELETE);
}

bool has_header(ngx_http_request_t *r, std::string_view name)
{
    bool has = false;

    for_each_header(r->headers_in.headers, name,
                    [&](const ngx_table_elt_t &) { has = true; });

    return has;
}

/* Whether no Origin header, should there be one, names another server. */
bool is_from_here(ngx_http_request_t *r)
{
    const ngx_table_elt_t *host = r->headers_in.host;
    std::string_view own = host != nullptr ? view(host->value) : "";
    bool is_own = true;

    for_each_header(
        r->headers_in.headers, "origin", [&](const ngx_table_elt_t &origin) {
            is_own = is_own && is_own_origin(view(origin.value), own);
        });

    return is_own;
}

/* Whether the request is meant to change something, and comes from where it may
 * come from. False: it has been refused. */
bool may_change(ngx_http_request_t *r, ngx_int_t *rc)
{
    const ngx_table_elt_t *type = r->headers_in.content_type;

    if (r != r->main) {
        *rc = send_complaint(r, NGX_HTTP_FORBIDDEN,
                             Complaint::of("a subrequest must not change "
                                           "anything"));
        return false;
    }

    if (!is_from_here(r)) {
        *rc = send_complaint(r, NGX_HTTP_FORBIDDEN,
                             Complaint::of("the request comes from a page of "
                                           "another server: its Origin must be "
                                           "what its Host says"));
        return false;
    }

    if (!is_own_host(r)) {
        *rc = send_complaint(
            r, NGX_HTTP_FORBIDDEN,
            Complaint::about("the Host ", view(r->headers_in.server),
                             " is no name of this server, must be one of its "
                             "server_name, an IP address, localhost, or one of "
                             "\"sliding_limit_metrics admin host=\""));
        return false;
    }

    if ((type == nullptr || !is_json_type(view(type->value)))
        && !has_header(r, "x-requested-with"))
    {
        *rc = send_complaint(r, NGX_HTTP_UNSUPPORTED_MEDIA_TYPE,
                             Complaint::of("a change must have a Content-Type "
                                           "of application/json, or a header "
                                           "X-Requested-With"));
        return false;
    }

    return true;
}

const Zone *find_zone(const MainConf &mcf, std::string_view name)
{
    for (const Zone *zone : elements<Zone *>(mcf.zones)) {
        if (view(zone->name) == name) {
            return zone;
        }
    }

    return nullptr;
}

/* Decoded texts are written to `room`, which has the size of the arguments. */
bool read_question(ngx_http_request_t *r, char *room,
                   OperatorQuestion *question, Complaint *complaint)
{
    ClientQuery query;

    if (!read_client_query(view(r->args), room, &query, complaint)) {
        return false;
    }

    question->zone = find_zone(*main_conf(r), query.zone);
    question->key = query.key;
    question->is_list = query.is_list;
    question->cursor = query.cursor;

    if (question->zone == nullptr) {
        *complaint = Complaint::about("unknown zone ", query.zone,
                                      ", must be that of a sliding_limit");
        return false;
    }

    if (is_change(r) && query.is_list) {
        *complaint = Complaint::of("overrides can only be looked at, must be "
                                   "?zone=ZONE&key=KEY for a change");
        return false;
    }

    return true;
}

ngx_int_t refuse_method(ngx_http_request_t *r)
{
    bool is_admin = location_conf(r)->metrics.is_admin;

    if (!set_header(r, "Allow",
                    is_admin ? "GET, HEAD, PUT, DELETE" : "GET, HEAD")) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return send_complaint(
        r, NGX_HTTP_NOT_ALLOWED,
        is_admin ? Complaint::about("the method ", view(r->method_name),
                                    " is not allowed, must be GET, HEAD, PUT "
                                    "or DELETE")
                 : Complaint::about("the method ", view(r->method_name),
                                    " is not allowed, must be GET or HEAD; "
                                    "changes need \"sliding_limit_metrics "
                                    "admin\""));
}

}  // namespace

bool is_about_clients(ngx_http_request_t *r) noexcept
{
    return !is_look(r) || names_zone(view(r->args));
}

ngx_int_t client_handler(ngx_http_request_t *r) noexcept
{
    OperatorQuestion question;
    Complaint complaint;
    ngx_int_t rc;

    if (!is_look(r) && !(location_conf(r)->metrics.is_admin && is_change(r))) {
        return refuse_method(r);
    }

    if (is_change(r) && !may_change(r, &rc)) {
        return rc;
    }

    auto *room = static_cast<char *>(ngx_pnalloc(r->pool, r->args.len + 1));

    if (room == nullptr) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (!read_question(r, room, &question, &complaint)) {
        return send_complaint(r, NGX_HTTP_BAD_REQUEST, complaint);
    }

    if (r->method == NGX_HTTP_DELETE) {
        question.intervention.act = Act::kForget;
    }

    return OperatorRequest::begin(r, question);
}

}  // namespace sl
