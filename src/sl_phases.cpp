#include "sl_phases.h"

#include <algorithm>

#include "answer/sl_headers.h"
#include "answer/sl_refusal.h"
#include "request/sl_check.h"
#include "usage/sl_usage.h"

namespace sl {

namespace {

ngx_http_output_header_filter_pt next_header_filter;
ngx_http_output_header_filter_pt next_last_header_filter;
ngx_http_output_body_filter_pt next_body_filter;

/* Nothing is known, not even whether it was counted: on_error decides. */
ngx_int_t out_of_memory(ngx_http_request_t *r)
{
    if (location_conf(r)->on_error != kDeny) {
        return NGX_DECLINED;
    }

    /* there is no check by which the filter would know; nor is there memory to
     * be sure of this */
    (void)forbid_caching(r);

    return NGX_HTTP_SERVICE_UNAVAILABLE;
}

/*
 * Called again when the answer is there, and at any time before that. To let a
 * request go on is NGX_DECLINED, never NGX_OK: under "satisfy any" that would
 * let it in past the other access modules.
 */
ngx_int_t check_limits(ngx_http_request_t *r, Phase phase)
{
    if (!(location_conf(r)->phases & phase)) {
        return NGX_DECLINED;
    }

    Check *check = Check::find_or_create(r);

    if (check == nullptr) {
        return out_of_memory(r);
    }

    check->enter_location();

    if (check->is_waiting()) {
        return NGX_AGAIN;
    }

    if (!check->take_answer()) {

        /* our own error_page: refused once is enough */
        if (check->is_refused()) {
            return NGX_DECLINED;
        }

        check->add_limits(phase);
    }

    while (!check->is_refused() && check->ask_next()) {
        if (check->is_waiting()) {
            return NGX_AGAIN;
        }
    }

    return check->is_refused() ? refuse(r, *check) : NGX_DECLINED;
}

ngx_int_t access_handler(ngx_http_request_t *r) noexcept
{
    Check *check = r->post_action ? Check::find(r) : nullptr;

    if (check != nullptr) {
        check->enter_post_action();
    }

    return check_limits(r, kAccess);
}

/* Unlike the access phase this one is also run for subrequests. */
ngx_int_t precontent_handler(ngx_http_request_t *r) noexcept
{
    return r == r->main ? check_limits(r, kPrecontent) : NGX_DECLINED;
}

/* Subrequests have none: their answers become a part of another. */
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

        if (check->shown() != nullptr) {
            set_headers(r, *check);
        }
    }

    if (UsageSettings *usage = location_conf(r)->usage) {
        begin_to_read_usage(r, usage);
    }

    return next_header_filter(r);
}

/* Reads the body before other filters compress it, or make another document of
 * it. */
ngx_int_t body_filter(ngx_http_request_t *r, ngx_chain_t *in) noexcept
{
    Check *check = check_of_answer(r);

    read_usage(r, in);

    if (check != nullptr) {
        check->sending();
    }

    return next_body_filter(r, in);
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
    if (check != nullptr && check->answer_with(r->headers_out.status)) {
        set_headers(r, *check);
    }

    forget_usage_of_part(r);

    if (check != nullptr && check->is_refused() && !forbid_caching(r)) {
        return NGX_ERROR;
    }

    /* an answer without a body ends here */
    if (check != nullptr) {
        check->sending();
    }

    return next_last_header_filter(r);
}

/* Here the check hears of requests that end without an answer, or before all of
 * it was sent. */
ngx_int_t log_handler(ngx_http_request_t *r) noexcept
{
    Check *check = check_of_answer(r);

    if (check != nullptr) {
        if (r->post_action) {
            check->enter_post_action();
        }

        check->end(status_of(r));
    }

    return NGX_OK;
}

bool add_handler(ngx_conf_t *cf, ngx_uint_t phase, ngx_http_handler_pt function)
{
    auto *cmcf = static_cast<ngx_http_core_main_conf_t *>(
        ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module));
    auto *handler = static_cast<ngx_http_handler_pt *>(
        ngx_array_push(&cmcf->phases[phase].handlers));

    if (handler == nullptr) {
        return false;
    }

    *handler = function;

    return true;
}

/*
 * The handlers of a phase stand side by side, alike but for their functions: a
 * checker alone does not tell phases apart, where each of them goes on does. A
 * checker that is null ends them all.
 */
bool put_first(ngx_http_phase_handler_t *handlers, ngx_http_handler_pt function)
{
    ngx_http_phase_handler_t *ours = handlers;

    while (ours->checker != nullptr && ours->handler != function) {
        ours++;
    }

    if (ours->checker == nullptr) {
        return false;
    }

    ngx_http_phase_handler_t *first = ours;

    while (first != handlers && first[-1].checker == ours->checker
           && first[-1].next == ours->next)
    {
        first--;
    }

    std::rotate(first, ours, ours + 1);

    return true;
}

}  // namespace

bool install_handlers(ngx_conf_t *cf) noexcept
{
    return add_handler(cf, NGX_HTTP_ACCESS_PHASE, access_handler)
           && add_handler(cf, NGX_HTTP_PRECONTENT_PHASE, precontent_handler)
           && add_handler(cf, NGX_HTTP_LOG_PHASE, log_handler);
}

void install_header_filter() noexcept
{
    next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = header_filter;
}

void install_body_filter() noexcept
{
    next_body_filter = ngx_http_top_body_filter;
    ngx_http_top_body_filter = body_filter;
}

void install_last_header_filter() noexcept
{
    next_last_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = last_header_filter;
}

/*
 * Whoever comes before a limit can keep requests from it: by a 401, under
 * "satisfy any" by letting them in, or by an answer of its own. But nginx runs
 * handlers in the reverse order of its modules, and this one has its place
 * among the filters: those of dynamic modules without filters come before it,
 * however they are loaded.
 */
bool put_handlers_first(ngx_http_core_main_conf_t *cmcf,
                        const char **missing) noexcept
{
    ngx_http_phase_handler_t *handlers = cmcf->phase_engine.handlers;

    if (!put_first(handlers, access_handler)) {
        *missing = "access";
        return false;
    }

    if (!put_first(handlers, precontent_handler)) {
        *missing = "precontent";
        return false;
    }

    return true;
}

}  // namespace sl
