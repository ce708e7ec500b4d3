/* What a limit's line means for one request: its variables evaluated. */

#pragma once

#include "base/sl_nginx.h"
#include "request/sl_conf.h"

namespace sl {

struct LimitValues {
    /* Whether the limit applies. If not, the request is exempt, and the rest
     * means nothing. */
    bool apply;

    ngx_str_t key;
    int64_t max;
    int64_t cost;
};

/*
 * What the request has cost, now that it has ended, of a limit that is to be
 * settled. False if that is not known: what was reserved stands.
 */
bool evaluate_true_cost(ngx_http_request_t *r, const Limit &limit,
                        int64_t *cost) noexcept;

/* Evaluates the limit's variables. False: out of memory, or that failed. */
bool evaluate_limit(ngx_http_request_t *r, const Limit &limit,
                    LimitValues *values) noexcept;

}  // namespace sl
