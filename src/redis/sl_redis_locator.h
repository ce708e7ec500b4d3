/* Finds out where to connect to, each time anew. */

#pragma once

#include "redis/sl_redis_settings.h"

namespace sl {

class LocatorUser {
  public:
    /* An address in numbers, or a socket, that lives only during the call. */
    virtual void located(const RedisEndpoint &where) noexcept = 0;
    virtual void not_located(Trouble trouble,
                             std::string_view reason) noexcept = 0;

  protected:
    ~LocatorUser() = default;
};

class RedisLocator {
  public:
    virtual ~RedisLocator() = default;

    /*
     * Tells the user one of the two, once: soon, within a time of its own, or
     * before it returns. Looks for one user at a time.
     */
    virtual void locate(LocatorUser &user) noexcept = 0;

    /* The user does not want to know any more. */
    virtual void cancel() noexcept = 0;
};

/*
 * Looks a name up, by nginx's resolver. hiredis would do it, too, but hold up
 * the worker meanwhile: so hiredis is only ever given numbers.
 */
class NameLookup {
  public:
    explicit NameLookup(const RedisSettings &settings) noexcept;
    ~NameLookup();

    NameLookup(const NameLookup &) = delete;
    NameLookup &operator=(const NameLookup &) = delete;

    /*
     * As RedisLocator::locate(), and instead of a look-up that is under way. An
     * endpoint that is no name is told at once. A name must stay where it is
     * until the user is told, and is put in lower case.
     */
    void start(const RedisEndpoint &endpoint, LocatorUser &user) noexcept;
    void cancel() noexcept;

  private:
    void resolved(ngx_resolver_ctx_t *ctx) noexcept;

    static void on_resolved(ngx_resolver_ctx_t *ctx) noexcept;

    const RedisSettings &settings_;
    LocatorUser *user_;
    in_port_t port_;

    /* nullptr: nothing is being looked up. */
    ngx_resolver_ctx_t *ctx_;

    /* Several addresses of a name are tried in turn. */
    ngx_uint_t turn_;
};

/* Names servers that are known, one after the other. */
class FixedLocator final : public RedisLocator {
  public:
    FixedLocator(const RedisSettings &settings, const RedisEndpoint *endpoints,
                 ngx_uint_t count) noexcept
        : lookup_(settings), endpoints_(endpoints), count_(count), next_(0)
    {}

    void locate(LocatorUser &user) noexcept override
    {
        const RedisEndpoint &endpoint = endpoints_[next_];

        next_ = (next_ + 1) % count_;
        lookup_.start(endpoint, user);
    }

    void cancel() noexcept override { lookup_.cancel(); }

  private:
    NameLookup lookup_;
    const RedisEndpoint *endpoints_;
    ngx_uint_t count_;
    ngx_uint_t next_;
};

/* Whether a host can be connected to without looking it up. */
bool is_numeric_address(std::string_view host) noexcept;

}  // namespace sl
