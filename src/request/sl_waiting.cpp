#include "request/sl_waiting.h"

namespace sl {

namespace {

void stay(ngx_http_request_t *) noexcept {}

}  // namespace

/* This is what limit_req does while it delays. */
void hold(ngx_http_request_t *r) noexcept
{
    ngx_event_t *rev = r->connection->read;

    r->write_event_handler = stay;

    if (rev->ready) {
        ngx_post_event(rev, &ngx_posted_events);

    } else if (ngx_handle_read_event(rev, 0) != NGX_OK) {
        /* the check goes on; only an early end would go unnoticed */
        return;
    }

    r->read_event_handler = ngx_http_test_reading;
}

bool is_held(ngx_http_request_t *r) noexcept
{
    return r->write_event_handler == stay;
}

/* Whoever calls may be inside hiredis: phases must not run there. */
void resume(ngx_http_request_t *r) noexcept
{
    r->read_event_handler = ngx_http_block_reading;
    r->write_event_handler = ngx_http_core_run_phases;

    ngx_post_event(r->connection->write, &ngx_posted_events);
}

}  // namespace sl
