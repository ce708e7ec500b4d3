/* Asks Sentinels, one after the other, where the primary is. */

#pragma once

#include "base/sl_wakeup.h"
#include "redis/sl_redis_context.h"
#include "redis/sl_redis_locator.h"

namespace sl {

class SentinelLocator final : public RedisLocator, private LocatorUser {
  public:
    /*
     * `first` is the Sentinel to begin with, for all locators of a worker: the
     * one that looks whether the primary has moved asks the Sentinel that the
     * others believe.
     */
    SentinelLocator(const RedisSettings &settings, ngx_uint_t &first) noexcept;
    ~SentinelLocator() override;

    void locate(LocatorUser &user) noexcept override;
    void cancel() noexcept override;

    /* The server that was located is of no use: the Sentinel that named it may
     * be behind the times, and another one is asked first next time. */
    void distrust() noexcept;

  private:
    void ask_next() noexcept;
    void ask(const RedisEndpoint &sentinel) noexcept;
    void located(const RedisEndpoint &where) noexcept override;
    void not_located(Trouble trouble,
                     std::string_view reason) noexcept override;

    /* `format` says what is wrong, with %V for `text`, which anybody may have
     * written. */
    void try_another(Trouble trouble, const char *format,
                     std::string_view text) noexcept;

    void answered(const redisReply *reply) noexcept;
    bool read_address(std::string_view host, std::string_view number) noexcept;
    void found(const RedisEndpoint &primary) noexcept;
    void drop_context() noexcept;
    void timed_out() noexcept;

    static void on_auth(redisAsyncContext *ac, void *reply, void *) noexcept;
    static void on_answer(redisAsyncContext *ac, void *reply, void *) noexcept;
    static void on_shutdown(redisAsyncContext *ac) noexcept;

    const RedisSettings &settings_;

    /* Looks up the Sentinel that is to be asked; and then, once that has
     * answered, the primary that it names. */
    NameLookup lookup_;
    bool has_answered_;
    RedisEndpoint named_;
    char named_host_[kMaxHostName + 1];

    LocatorUser *user_; /* nullptr: nobody wants to know */
    redisAsyncContext *ac_;
    Wakeup timer_;

    ngx_uint_t &first_;

    /* The Sentinel that is asked, and how many were asked in vain before it. */
    ngx_uint_t current_;
    ngx_uint_t failed_;
};

}  // namespace sl
