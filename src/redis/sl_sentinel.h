/* Asks Sentinels, one after the other, where the primary is. */

#pragma once

#include "redis/sl_redis_context.h"
#include "redis/sl_redis_locator.h"

namespace sl {

class SentinelLocator final : public RedisLocator, private LocatorUser {
  public:
    /*
     * `first` is the one to begin with, for all locators of a worker: who looks
     * whether the primary has moved asks the one that the others believe.
     */
    SentinelLocator(const RedisSettings &settings, ngx_uint_t &first) noexcept;
    ~SentinelLocator() override;

    void locate(LocatorUser &user) noexcept override;
    void cancel() noexcept override;

    /* The server that was located is of no use: begin with another next time,
     * as this one may be behind the times. */
    void distrust() noexcept;

  private:
    void ask_next() noexcept;
    void ask(const RedisEndpoint &sentinel) noexcept;
    void located(const RedisEndpoint &where) noexcept override;
    void not_located(Trouble trouble,
                     std::string_view reason) noexcept override;
    void try_another(Trouble trouble, std::string_view reason) noexcept;
    void answered(const redisReply *reply) noexcept;
    void found(const RedisEndpoint &primary) noexcept;
    void drop_context() noexcept;

    static void on_auth(redisAsyncContext *ac, void *reply, void *) noexcept;
    static void on_answer(redisAsyncContext *ac, void *reply, void *) noexcept;
    static void on_shutdown(redisAsyncContext *ac) noexcept;
    static void on_timer(ngx_event_t *ev) noexcept;

    const RedisSettings &settings_;

    /* Of the Sentinel that is to be asked; then of what it says, if that is a
     * name: of a primary. */
    NameLookup lookup_;
    bool has_answered_;
    RedisEndpoint named_;
    char named_host_[kMaxHostName + 1];

    LocatorUser *user_; /* nullptr: nobody wants to know */
    redisAsyncContext *ac_;
    ngx_event_t timer_;

    ngx_uint_t &first_;

    /* The one that is asked, and how many have been asked in vain before. */
    ngx_uint_t current_;
    ngx_uint_t failed_;

    /* What went wrong with the last one. */
    char reason_[512];
};

}  // namespace sl
