/*
 * Runs a hiredis async context on nginx's event loop.
 *
 * The context owns its socket; nginx only watches it. The adapter lives from
 * attach() until hiredis calls its cleanup hook, and nobody else holds it.
 */

#pragma once

#include "base/sl_nginx.h"

extern "C" {
#include <hiredis/async.h>
}

namespace sl {

/*
 * To be called once, before any command. False if nginx has no connection
 * slot or memory left: the caller frees the context.
 *
 * `on_shutdown` is called when worker_shutdown_timeout is over, and must free
 * the context, at the end of this turn at the latest. (hiredis would tell
 * nobody of one that is still connecting.)
 */
bool attach_to_event_loop(
    redisAsyncContext *ac, ngx_log_t *log,
    void (*on_shutdown)(redisAsyncContext *) noexcept) noexcept;

/*
 * Reads what has come in on an attached context, now. For when the event that
 * would do it may be late; not from inside a callback of the same context. May
 * free the context.
 */
void read_waiting_input(redisAsyncContext *ac) noexcept;

/* Writes what waits for the end of this turn of the event loop, now. May free
 * the context. */
void write_waiting_output(redisAsyncContext *ac) noexcept;

}  // namespace sl
