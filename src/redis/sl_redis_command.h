/*
 * A command that has been sent and waits for its reply: a call of the script,
 * several in one, or something that a connection or the routes say themselves.
 */

#pragma once

extern "C" {
#include <hiredis/async.h>
}

namespace sl {

struct RedisCommand {
    /*
     * Called once: with the reply, or with nullptr if the connection breaks
     * first. Inside hiredis: the handler must not run requests.
     */
    void (*on_reply)(RedisCommand *self, redisReply *reply) noexcept = nullptr;
};

}  // namespace sl
