#include "redis/sl_redis_recovery.h"

namespace sl {

namespace {

/* How often a worker looks whether the breaker has closed. */
constexpr ngx_msec_t kLookEveryMs = 100;

int64_t now_ms()
{
    return static_cast<int64_t>(ngx_current_msec);
}

uint32_t dice()
{
    return static_cast<uint32_t>(ngx_random());
}

}  // namespace

RedisRecovery::RedisRecovery(const RedisSettings &settings,
                             WorkerBreaker &breaker, StoreMetrics &metrics,
                             RedisLog &log, RedisConnection &connection,
                             RecoveryUser &user) noexcept
    : settings_(settings), breaker_(breaker), metrics_(metrics), log_(log),
      connection_(connection), user_(user), is_connected_(false), ticket_(0),
      not_before_(0)
{}

void RedisRecovery::stop() noexcept
{
    timer_.cancel();
    set_connected(false);
}

void RedisRecovery::set_connected(bool is_connected) noexcept
{
    if (is_connected == is_connected_) {
        return;
    }

    is_connected_ = is_connected;
    is_connected ? breaker_.connection_up() : breaker_.connection_down();
}

void RedisRecovery::look_soon() noexcept
{
    if (!timer_.is_set()) {
        timer_.after(kLookEveryMs - dice() % (kLookEveryMs / 2));
    }
}

/* Everything that is done about it is done from here, until all is well. */
void RedisRecovery::recover() noexcept
{
    bool may_have_stalled = user_.look_after_calls();
    bool may_try = connection_.is_up() || now_ms() >= not_before_;

    if (breaker_.is_open()) {
        if (ticket_ == 0 && may_try) {
            ticket_ = breaker_.take_probe(now_ms(), probe_span());
            use_ticket();
        }

        look_soon();

    } else if (!connection_.accepts()) {
        may_try ? connection_.reopen() : look_soon();
    }

    /* nobody else may come to notice it */
    if (may_have_stalled) {
        look_soon();
    }
}

void RedisRecovery::try_new_login() noexcept
{
    if (!connection_.has_old_login()) {
        return;
    }

    not_before_ = 0;

    if (ticket_ == 0) {
        ticket_ = breaker_.take_probe_early(now_ms(), probe_span());
        use_ticket();
    }
}

void RedisRecovery::use_ticket() noexcept
{
    if (ticket_ != 0) {
        connection_.is_up() ? probe() : connection_.reopen();
    }
}

/* To find it, to connect and to ask. */
int64_t RedisRecovery::probe_span() const noexcept
{
    return static_cast<int64_t>(settings_.connect_timeout
                                    * (settings_.endpoint_count + 1)
                                + settings_.timeout + kLookEveryMs);
}

/*
 * A real call, and one that must be answered in the time that a request waits:
 * the set-up of a connection has more.
 */
void RedisRecovery::probe() noexcept
{
    if (!user_.send_probe(*this)) {
        probe_failed(0);
    }
}

void RedisRecovery::receive(const Answer &of_probe) noexcept
{
    /* the connection broke, and that has been dealt with */
    if (ticket_ == 0) {
        return;
    }

    if (!of_probe.known) {
        probe_failed(0);
        return;
    }

    if (breaker_.probe_succeeded(ticket_, now_ms())) {
        log_.back(breaker_.open_for(now_ms()));
    }

    ticket_ = 0;
}

void RedisRecovery::probe_failed(int64_t least_delay) noexcept
{
    breaker_.probe_failed(ticket_, now_ms(), least_delay, dice());
    ticket_ = 0;
}

void RedisRecovery::connected() noexcept
{
    add(metrics_.connects);
    set_connected(true);

    /* a new connection that works is as good a reason as any to look */
    if (ticket_ == 0) {
        ticket_ = breaker_.take_probe_early(now_ms(), probe_span());
    }

    if (ticket_ != 0) {
        probe();
    }
}

void RedisRecovery::disconnected(Trouble trouble, std::string_view reason,
                                 ngx_msec_t began) noexcept
{
    int64_t least_delay = needs_a_person(trouble) ? kNeedsPersonDelayMs : 0;

    not_before_ = now_ms() + least_delay;

    if (began != 0) {
        add(metrics_.connect_failures);
    }

    look_soon();
    set_connected(false);

    if (ticket_ != 0) {
        probe_failed(least_delay);
    }

    /* what Redis says to a check concerns all; that this connection cannot be
     * had, or is silent, does only if no other one is better off */
    bool is_told = began == 0 && trouble != Trouble::kUnreachable;

    if (trouble == Trouble::kLocal || (!is_told && breaker_.is_connected())) {
        /* worth a line if somebody asks before it has mended itself */
        reason_ = OneLine(reason, settings_);
        return;
    }

    reason_ = OneLine();

    if (!breaker_.is_open()) {
        breaker_.failed_for_all(now_ms(), least_delay, dice());
    }

    say_it_is_down(trouble, reason);
}

/* That the store is down is in the log; that only this connection is, not. */
void RedisRecovery::turned_away() noexcept
{
    if (!reason_.text().empty() && !breaker_.is_open()) {
        log_.complain(reason_.text());
    }
}

void RedisRecovery::timed_out() noexcept
{
    if (breaker_.failed(now_ms(), dice())) {
        say_it_is_down(Trouble::kUnreachable, "no replies within the timeout");

    } else if (!breaker_.is_open()) {
        log_.complain("no reply within the timeout");
    }
}

/* Another trouble on the way back is news, the same one is not. */
void RedisRecovery::say_it_is_down(Trouble trouble,
                                   std::string_view reason) noexcept
{
    if (breaker_.is_news(static_cast<uint32_t>(trouble))) {
        OneLine why = log_.down(trouble, reason);

        breaker_.explain(log_.server(), why.text());
    }
}

}  // namespace sl
