#include "redis/sl_redis_log.h"

#include <algorithm>

#include "redis/sl_redis_login.h"

namespace sl {

namespace {

constexpr ngx_msec_t kComplainEveryMs = 10000;

/* What to do about it, where the reason does not say so itself. */
std::string_view advice_on(Trouble trouble)
{
    switch (trouble) {
    case Trouble::kElsewhere:
        return "; it has only a part of a Redis Cluster's keys, use "
               "cluster:// instead";

    case Trouble::kNoScripting:
        return "; scripting is off or missing there: load Valkey's Lua module, "
               "do not rename SCRIPT and EVALSHA, or use a server with "
               "scripting";

    default:
        return "";
    }
}

}  // namespace

OneLine::OneLine(std::string_view raw, const RedisSettings &settings,
                 std::string_view advice) noexcept
    : OneLine()
{
    size_ =
        mask_passwords(raw, settings, buffer_, sizeof(buffer_) - advice.size());

    std::replace_if(
        buffer_, buffer_ + size_,
        [](unsigned char ch) { return ch < 0x20 || ch == 0x7f; }, '?');

    size_ += advice.copy(buffer_ + size_, sizeof(buffer_) - size_);
}

void RedisLog::complain(std::string_view why) noexcept
{
    silent_failures_++;

    if (complained_at_ != 0
        && ngx_current_msec - complained_at_ < kComplainEveryMs) {
        return;
    }

    OneLine line(why, settings_);
    ngx_str_t text = str(line.text());

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "sliding_limit: redis \"%V\": %ui check(s) failed, "
                  "the last one because: %V",
                  &name_, silent_failures_, &text);

    silent_failures_ = 0;
    complained_at_ = ngx_current_msec;
}

OneLine RedisLog::down(Trouble trouble, std::string_view reason) noexcept
{
    OneLine why(reason, settings_, advice_on(trouble));
    ngx_str_t text = str(why.text());
    ngx_uint_t level = needs_a_person(trouble) ? NGX_LOG_CRIT : NGX_LOG_ERR;

    ngx_log_error(level, ngx_cycle->log, 0,
                  "sliding_limit: redis \"%V\" is down: %V", &name_, &text);

    return why;
}

/* At the level of the failure: who reads of one must read of the other. */
void RedisLog::back(int64_t after_ms) noexcept
{
    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "sliding_limit: redis \"%V\" is back after %L ms", &name_,
                  after_ms);
}

/* The name begins with what all servers of the cluster have in common. */
std::string_view RedisLog::server() const noexcept
{
    constexpr std::string_view kAt = " at ";

    std::string_view rest = view(name_).substr(settings_.name.len);

    return rest.substr(std::min(rest.size(), kAt.size()));
}

bool needs_a_person(Trouble trouble) noexcept
{
    return trouble == Trouble::kForbidden || trouble == Trouble::kElsewhere
           || trouble == Trouble::kNoScripting;
}

}  // namespace sl
