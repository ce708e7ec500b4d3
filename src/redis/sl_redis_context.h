/* Opens a hiredis context on nginx's event loop. */

#pragma once

#include "redis/sl_redis_settings.h"

extern "C" {
#include <hiredis/async.h>
}

namespace sl {

struct OpenedContext {
    /* nullptr: it failed, because: */
    redisAsyncContext *ac;
    Trouble trouble;
    char reason[128];
};

/*
 * Begins to connect; commands may be sent at once. `on_shutdown` is called
 * when worker_shutdown_timeout is over, and must free the context. Callbacks
 * are the caller's to set, on_connect the last.
 */
OpenedContext open_context(
    const RedisEndpoint &endpoint, const RedisTls *tls,
    void (*on_shutdown)(redisAsyncContext *) noexcept) noexcept;

/*
 * From now on it fails if its peer is silent for ten seconds, or leaves data
 * unacknowledged for that long, whether anything waits for it or not. Not for
 * unix sockets, nor while it connects.
 */
void watch_peer(redisAsyncContext *ac) noexcept;

/* Why hiredis gives a connection up; whether there was ever an answer, over it
 * or one before it. */
std::string_view reason_of(const redisAsyncContext *ac,
                           bool has_answered) noexcept;

/* Why it is given up if nothing has come within connect_timeout. */
std::string_view reason_of_silence(const redisAsyncContext *ac,
                                   bool has_answered = false) noexcept;

/* What an error reply, or a string, says. */
inline std::string_view text_of(const redisReply *reply) noexcept
{
    return {reply->str, static_cast<size_t>(reply->len)};
}

}  // namespace sl
