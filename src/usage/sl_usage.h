/*
 * What a response says about its own cost: a number in its JSON, which is read
 * as it passes. Nothing of the response is held back or changed.
 */

#pragma once

#include "base/sl_nginx.h"
#include "usage/pure/sl_usage_scanner.h"

namespace sl {

/* A `sliding_limit_usage` line. */
struct UsageSettings {
    /* None: the responses of the location are not read. */
    UsagePaths paths;

    /* The log has been told, by this worker, of a response that cannot be read:
     * once is enough. */
    bool has_warned;
};

/* A response begins: if it has something to be read, that is from now on. */
void begin_to_read_usage(ngx_http_request_t *r,
                         UsageSettings *settings) noexcept;

/* By now it is known whether the response is only a part of a document, which
 * is not read: a client could choose a part without the number. */
void forget_usage_of_part(ngx_http_request_t *r) noexcept;

/* A part of its body passes. */
void read_usage(ngx_http_request_t *r, const ngx_chain_t *body) noexcept;

/* What has been read so far; kNoUsage: nothing. */
int64_t usage_of(ngx_http_request_t *r) noexcept;

}  // namespace sl
