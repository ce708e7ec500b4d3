#include "answer/sl_shown_values.h"

namespace sl {

namespace {

/* What is left of the wait: the answer may have taken its time since then. */
int64_t wait_left_us(const AppliedLimit &applied)
{
    return applied.verdict.state.wait_us
           - static_cast<int64_t>(ngx_current_msec - applied.at) * 1000;
}

bool has_wait(const AppliedLimit &applied)
{
    return applied.verdict.known && applied.verdict.state.wait_us != kNoWait;
}

}  // namespace

int64_t wait_seconds(const AppliedLimit &applied) noexcept
{
    return has_wait(applied) ? seconds_to_wait(wait_left_us(applied)) : -1;
}

int64_t reset_value(ngx_http_request_t *r, const AppliedLimit &applied) noexcept
{
    if (location_conf(r)->reset == kDelta || !has_wait(applied)) {
        return wait_seconds(applied);
    }

    ngx_time_t *now = ngx_timeofday();

    return now->sec
           + seconds_to_wait(wait_left_us(applied)
                             + static_cast<int64_t>(now->msec) * 1000);
}

int64_t retry_after_value(const Check &check) noexcept
{
    return is_rejection(check.outcome()) ? wait_seconds(*check.shown()) : -1;
}

}  // namespace sl
