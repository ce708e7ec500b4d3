/*
 * Sees to it that a connection is never silent for long.
 *
 * What is idle for long may be forgotten on the way (by NAT, a firewall, a
 * balancer), and nobody is told. So a silent connection says something now and
 * then: that keeps it alive, or shows that it is dead before a request does.
 */

#pragma once

#include "base/sl_wakeup.h"
#include "redis/sl_redis_command.h"
#include "redis/sl_redis_user.h"

namespace sl {

class RedisConnection;

class SignOfLife {
  public:
    SignOfLife(const RedisSettings &settings,
               RedisConnection &connection) noexcept;

    SignOfLife(const SignOfLife &) = delete;
    SignOfLife &operator=(const SignOfLife &) = delete;

    /* From now on, until the connection is given up. */
    void watch() noexcept;
    void stop() noexcept;

    /* A reply has come. */
    void heard() noexcept { heard_at_ = ngx_current_msec; }

  private:
    /* Something without effect, which a user with the least rights may say. */
    struct Question : RedisCommand {
        SignOfLife *sign;
    };

    void wake() noexcept;

    static void on_reply(RedisCommand *self, redisReply *reply) noexcept;

    const RedisSettings &settings_;
    RedisConnection &connection_;

    /* When something has to be said; then, by when it must be answered. */
    Wakeup timer_;
    bool is_awaited_;

    ngx_msec_t heard_at_;
    Question question_;
};

}  // namespace sl
