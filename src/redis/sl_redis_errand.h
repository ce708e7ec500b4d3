/*
 * How the errands of operators get to a server, and what operators are told if
 * they do not. An errand is a command other than a call about a request; see
 * ErrandReceiver.
 */

#pragma once

#include "redis/pure/sl_shared_breakers.h"
#include "redis/sl_redis_routes.h"

namespace sl {

/* Why an errand came to nothing, also in words. */
class ErrandFailure {
  public:
    ErrandFailure() noexcept : ErrandFailure(StoreError::kDown) {}

    explicit ErrandFailure(StoreError error,
                           std::string_view reason = {}) noexcept
        : error_(error), text_(), size_(0)
    {
        add(reason);
    }

    /* What receive() was told. */
    static ErrandFailure no_reply(StoreError error) noexcept;

    StoreError error() const noexcept { return error_; }
    std::string_view reason() const noexcept { return {text_, size_}; }

    /* What is too long is cut off. */
    void add(std::string_view text) noexcept
    {
        size_ += text.copy(text_ + size_, sizeof(text_) - size_);
    }

  private:
    StoreError error_;
    char text_[Outage::kMaxReason + 128];
    size_t size_;
};

class ErrandDesk {
  public:
    ErrandDesk(const RedisSettings &settings, RedisRoutes &routes,
               SharedBreakers &breakers) noexcept
        : settings_(settings), routes_(routes), breakers_(breakers)
    {}

    const RedisSettings &settings() const noexcept { return settings_; }
    RedisRoutes &routes() const noexcept { return routes_; }

    KeyStyle key_style() const noexcept
    {
        return settings_.topology == Topology::kCluster ? KeyStyle::kInBraces
                                                        : KeyStyle::kPlain;
    }

    /* To the server that has this slot. nullptr: `*failure` says why not, and
     * the receiver is not told anything. */
    RedisCall *send(std::string_view command, unsigned slot,
                    ErrandReceiver &receiver,
                    ErrandFailure *failure) const noexcept;

  private:
    ErrandFailure why_away(const RedisChannel &channel) const noexcept;

    const RedisSettings &settings_;
    RedisRoutes &routes_;
    SharedBreakers &breakers_;
};

}  // namespace sl
