#include "redis/pure/sl_breaker.h"

#include <algorithm>
#include <iterator>

namespace sl {

namespace {

size_t word_of(uint64_t worker)
{
    return worker % BreakerState::kMaxWorkers / 64;
}

uint64_t bit_of(uint64_t worker)
{
    return uint64_t{1} << worker % 64;
}

}  // namespace

/* Called with every answer: so it writes only what changes. */
void Breaker::succeeded() noexcept
{
    if (state_->failures.load(std::memory_order_relaxed) != 0) {
        state_->failures.store(0, std::memory_order_relaxed);
    }
}

bool Breaker::failed(int64_t now, uint32_t random) noexcept
{
    int64_t last = state_->failed_at.load();

    while (now > last && !state_->failed_at.compare_exchange_weak(last, now)) {
    }

    return now > last && state_->failures.fetch_add(1) + 1 >= kTolerated
           && open(now, 0, random);
}

bool Breaker::failed_for_all(int64_t now, int64_t least_delay,
                             uint32_t random) noexcept
{
    return open(now, least_delay, random);
}

void Breaker::set_connected(uint64_t worker, bool is_connected) noexcept
{
    std::atomic<uint64_t> &word = state_->connected[word_of(worker)];

    if (is_connected) {
        word.fetch_or(bit_of(worker));
    } else {
        word.fetch_and(~bit_of(worker));
    }
}

bool Breaker::is_connected_elsewhere(uint64_t worker) const noexcept
{
    for (size_t i = 0; i < std::size(state_->connected); i++) {
        uint64_t own = i == word_of(worker) ? bit_of(worker) : 0;

        if ((state_->connected[i].load() & ~own) != 0) {
            return true;
        }
    }

    return false;
}

void Breaker::reset() noexcept
{
    state_->next_probe = 0;
    state_->opened_at = 0;
    state_->closed_at = 0;
    state_->failed_at = 0;
    state_->delay = 0;
    state_->failures = 0;
    state_->reason = 0;

    for (std::atomic<uint64_t> &word : state_->connected) {
        word = 0;
    }
}

bool Breaker::open(int64_t now, int64_t least_delay, uint32_t random) noexcept
{
    bool was_settled = state_->closed_at.load() <= now - kSettled;

    if (!schedule(0, now, was_settled ? 0 : state_->delay.load(), least_delay,
                  random))
    {
        return false;
    }

    state_->opened_at.store(now);

    return true;
}

/*
 * Sets when to probe next: in [d/2, d], where d doubles from time to time; or
 * after `least` and a little more. That is one exchange, so that a worker which
 * is killed has done it or has not.
 */
bool Breaker::schedule(int64_t instead_of, int64_t now, int64_t delay,
                       int64_t least, uint32_t random) noexcept
{
    int64_t d = std::clamp(delay, kShortestDelay, kLongestDelay);
    int64_t jittered = least > d ? least + random % (least / 10 + 1)
                                 : d - random % (d / 2 + 1);

    if (!state_->next_probe.compare_exchange_strong(instead_of, now + jittered))
    {
        return false;
    }

    state_->delay.store(std::min(2 * d, kLongestDelay));

    return true;
}

Breaker::Ticket Breaker::take_probe(int64_t now, int64_t span) noexcept
{
    int64_t at = state_->next_probe.load();

    return at != 0 && at <= now
                   && state_->next_probe.compare_exchange_strong(at, now + span)
               ? now + span
               : 0;
}

Breaker::Ticket Breaker::take_probe_early(int64_t now, int64_t span) noexcept
{
    int64_t at = state_->next_probe.load();

    return at != 0 && state_->next_probe.compare_exchange_strong(at, now + span)
               ? now + span
               : 0;
}

void Breaker::probe_failed(Ticket ticket, int64_t now, int64_t least_delay,
                           uint32_t random) noexcept
{
    if (ticket != 0) {
        schedule(ticket, now, state_->delay.load(), least_delay, random);
    }
}

bool Breaker::probe_succeeded(Ticket ticket, int64_t now) noexcept
{
    if (ticket == 0) {
        return false;
    }

    /* before it closes: what failed earlier must not open it again */
    succeeded();

    if (!state_->next_probe.compare_exchange_strong(ticket, 0)) {
        return false;
    }

    state_->closed_at.store(now);
    state_->reason.store(0);

    return true;
}

Outage Breaker::outage(int64_t now) const noexcept
{
    Outage outage = state_->outage.read();

    outage.for_ms = open_for(now);

    return outage;
}

}  // namespace sl
