#include "sl_phases.h"

#include <algorithm>

#include "answer/sl_refusal.h"
#include "request/sl_check.h"

namespace sl {

namespace {

/* Nothing is known, not even whether it was counted: on_error decides. */
ngx_int_t out_of_memory(ngx_http_request_t *r)
{
    return location_conf(r)->on_error == kDeny ? NGX_HTTP_SERVICE_UNAVAILABLE
                                               : NGX_DECLINED;
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

}  // namespace

ngx_int_t access_handler(ngx_http_request_t *r) noexcept
{
    return check_limits(r, kAccess);
}

/*
 * Whoever comes before a limit can keep requests from it: by a 401, or under
 * "satisfy any" by letting them in. But nginx runs access handlers in the
 * reverse order of its modules, and this one has its place among the filters:
 * those of dynamic modules without filters come before it, however they are
 * loaded.
 *
 * The handlers of a phase stand side by side, alike but for their functions; a
 * checker that is null ends them all.
 */
bool put_access_handler_first(ngx_http_core_main_conf_t *cmcf) noexcept
{
    ngx_http_phase_handler_t *first = cmcf->phase_engine.handlers;

    while (first->checker != nullptr
           && first->checker != ngx_http_core_access_phase)
    {
        first++;
    }

    ngx_http_phase_handler_t *ours = first;

    while (ours->checker == ngx_http_core_access_phase
           && ours->handler != access_handler)
    {
        ours++;
    }

    if (ours->checker != ngx_http_core_access_phase) {
        return false;
    }

    std::rotate(first, ours, ours + 1);

    return true;
}

/* Unlike the access phase this one is also run for subrequests. */
ngx_int_t precontent_handler(ngx_http_request_t *r) noexcept
{
    return r == r->main ? check_limits(r, kPrecontent) : NGX_DECLINED;
}

/* For requests that end without an answer; of others the status is known. */
ngx_int_t log_handler(ngx_http_request_t *r) noexcept
{
    Check *check = r == r->main ? Check::find(r) : nullptr;

    if (check != nullptr) {
        check->settle(status_of(r));
    }

    return NGX_OK;
}

}  // namespace sl
