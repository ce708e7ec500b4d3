/* Opens a hiredis context on nginx's event loop. */

#pragma once

#include <initializer_list>

#include "redis/sl_redis_settings.h"

extern "C" {
#include <hiredis/async.h>
}

namespace sl {

/* An array with more elements is no reply to anything: a step of SCAN finds
 * about a thousand keys, and rarely some more. */
constexpr size_t kMaxReplyElements = 4096;

struct OpenedContext {
    /* nullptr: it failed, and the rest says why. */
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
 * From now on the connection fails if its peer is silent for ten seconds, or
 * leaves data unacknowledged for that long, whether anything waits for it or
 * not. Not for unix sockets, nor while it connects.
 */
void watch_peer(redisAsyncContext *ac) noexcept;

/* Sends a command that has been written. False: out of memory, or the context
 * is about to end; `on_reply` is not called for it. */
bool send_command(redisAsyncContext *ac, redisCallbackFn *on_reply, void *data,
                  std::string_view text) noexcept;

/* The same, of a few words. */
bool send_words(redisAsyncContext *ac, redisCallbackFn *on_reply, void *data,
                std::initializer_list<std::string_view> words) noexcept;

/* Why hiredis gives a connection up. `has_answered`: there was ever an answer,
 * over this connection or one before it. */
std::string_view reason_of(const redisAsyncContext *ac,
                           bool has_answered) noexcept;

/* Why a connection is given up if nothing has come within connect_timeout. */
std::string_view reason_of_silence(const redisAsyncContext *ac,
                                   bool has_answered = false) noexcept;

/* What an error reply, or a string, says. */
inline std::string_view text_of(const redisReply *reply) noexcept
{
    return {reply->str, static_cast<size_t>(reply->len)};
}

}  // namespace sl
