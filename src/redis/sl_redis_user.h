/* Whom a connection tells how it is. */

#pragma once

#include "redis/pure/sl_key.h"
#include "redis/sl_redis_settings.h"

namespace sl {

/* Whoever uses a connection. */
class RedisUser {
  public:
    /* The server has let us in. It is not known yet whether counting works, but
     * calls will find the script. */
    virtual void let_in() noexcept = 0;

    /* It is up, for the first time or again. */
    virtual void connected() noexcept = 0;

    /*
     * It is down; `began` is when the attempt to connect did, or 0 if it has
     * been up.
     */
    virtual void disconnected(Trouble trouble, std::string_view reason,
                              ngx_msec_t began) noexcept = 0;

    /* It has broken, and another one is opened at once. */
    virtual void reconnecting() noexcept = 0;

    /* A key to try the script with; false: there is none. */
    virtual bool probe_key(RedisKey *key) const noexcept = 0;

    /* A key of another slot, if the server can be asked about both in one call;
     * false: it cannot. */
    virtual bool other_probe_key(RedisKey *key) const noexcept = 0;

    /* It turns out that the server cannot be asked about both. */
    virtual void found_slots() noexcept = 0;

  protected:
    ~RedisUser() = default;
};

}  // namespace sl
