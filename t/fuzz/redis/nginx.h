/*
 * As much of nginx as src/redis needs, and a worker's event loop whose time
 * passes when the target says so: the same input takes the same way each time.
 */

#pragma once

#include "base/sl_nginx.h"

namespace fuzz {

/* Few, so that an input can use them up. */
constexpr size_t kWorkerConnections = 6;

/* A new worker; what a former one left behind is gone. */
void start_worker();

/*
 * One turn of the event loop: what sockets and name servers say, timers, and
 * what was put off to its end. Timers come first if the worker was held up, and
 * then has not heard of what has come in.
 */
enum class Pace { kOrdinary, kHeldUp };
void turn(Pace pace);

void pass(ngx_msec_t time);

/* worker_shutdown_timeout is over. */
void end_connections();

/* Checks that nothing is left to happen, and that no connection is. */
void check_worker_is_done();

/* Names are looked up by this one. */
ngx_resolver_t *resolver();

/* The piece of memory that was asked for last. */
ngx_shm_zone_t &shared_memory();

/* To be defined by whoever uses all this: told every line of the log. */
void logged(std::string_view line);

}  // namespace fuzz
