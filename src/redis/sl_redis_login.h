/* Logging in to a Redis or a Sentinel, and keeping passwords out of the log. */

#pragma once

#include "redis/sl_redis_context.h"

namespace sl {

/* Sends AUTH if there is a password. False: out of memory. */
bool send_login(redisAsyncContext *ac, const RedisLogin &login,
                redisCallbackFn *on_reply, void *data) noexcept;

/* Reads the files that passwords stand in, if these may have changed. */
void refresh_passwords(const RedisSettings &settings) noexcept;

/* Whether there are such files. */
bool has_password_file(const RedisSettings &settings) noexcept;

/* How often passwords have changed. */
unsigned password_changes(const RedisSettings &settings) noexcept;

/* What an error reply to AUTH says. */
std::string_view refusal_of_login(const redisReply *reply) noexcept;

/*
 * Copies what a server has said, with "***" in the place of passwords, also of
 * those that were changed last, to `to`.
 * What has no room is cut off: only after this, or a part of one could be left.
 * Returns the size.
 */
size_t mask_passwords(std::string_view text, const RedisSettings &settings,
                      char *to, size_t room) noexcept;

}  // namespace sl
