/*
 * What the log is told about a server: that it is down and back, once each; and
 * failures of single checks, a line now and then.
 */

#pragma once

#include "redis/sl_redis_settings.h"
#include "store/pure/sl_outage.h"

namespace sl {

/*
 * What a server says may contain anything, also a password that it did not
 * expect. Here it is one line, without passwords, and cut off only then.
 */
class OneLine {
  public:
    OneLine() noexcept : buffer_(), size_(0) {}

    /* `advice` stands behind it, whole. */
    OneLine(std::string_view raw, const RedisSettings &settings,
            std::string_view advice = {}) noexcept;

    std::string_view text() const noexcept { return {buffer_, size_}; }

  private:
    char buffer_[Outage::kMaxReason];
    size_t size_;
};

class RedisLog {
  public:
    /* `name` is what the log calls the server. */
    RedisLog(const RedisSettings &settings, const ngx_str_t &name) noexcept
        : settings_(settings), name_(name), silent_failures_(0),
          complained_at_(0)
    {}

    /* A check has failed, which says nothing about the next one. */
    void complain(std::string_view why) noexcept;

    /* Returns what it has said of the reason, and of what to do about it. */
    OneLine down(Trouble trouble, std::string_view reason) noexcept;

    void back(int64_t after_ms) noexcept;

    /* Which server of a cluster it is; empty: the only one. */
    std::string_view server() const noexcept;

  private:
    const RedisSettings &settings_;
    const ngx_str_t &name_;

    /* Failures since the last complaint, and when that was. */
    ngx_uint_t silent_failures_;
    ngx_msec_t complained_at_;
};

/* A wrong password does not mend itself, nor does a server without scripting.
 */
bool needs_a_person(Trouble trouble) noexcept;

/* How long such a server is left alone: Redis logs every attempt with a wrong
 * password. */
constexpr ngx_msec_t kNeedsPersonDelayMs = 10000;

}  // namespace sl
