#include "metrics/pure/sl_history.h"

#include <algorithm>

namespace sl {

namespace {

/* 0 rather than less, if the counters were read in an unlucky moment. */
uint64_t difference(uint64_t later, uint64_t earlier)
{
    return later > earlier ? later - earlier : 0;
}

Tally difference(const Tally &later, const Tally &earlier)
{
    return Tally{difference(later.passed, earlier.passed),
                 difference(later.rejected, earlier.rejected),
                 difference(later.rejected_dry_run, earlier.rejected_dry_run),
                 difference(later.failed, earlier.failed)};
}

Tally tally_of(const PeriodNote &note)
{
    return Tally{note.passed.load(), note.rejected.load(),
                 note.rejected_dry_run.load(), note.failed.load()};
}

}  // namespace

/* Whoever notices first that a period has begun notes it down. If that process
 * is killed on the way, two periods become one, and some clients are counted
 * twice: that is all. */
template <uint64_t kSeconds, size_t kPeriods>
void History<kSeconds, kPeriods>::begin(uint64_t now, uint64_t before,
                                        const Tally &so_far) noexcept
{
    unsigned old_half = half_of(before);

    if (!running_.compare_exchange_strong(before, now << 1 | (old_half ^ 1u))) {
        return;
    }

    PeriodNote &old_note = notes_[number_of(before) % kPeriods];

    if (old_note.number.load() == number_of(before)) {
        old_note.clients = clients_[old_half].estimate();
        old_note.rejected_clients = rejected_clients_[old_half].estimate();
    }

    clients_[old_half].clear();
    rejected_clients_[old_half].clear();

    /* if the clock was set back, what is noted of the future is not true any
     * more */
    for (PeriodNote &future : notes_) {
        if (now < number_of(before) && future.number.load() > now) {
            future.number = 0;
        }
    }

    PeriodNote &note = notes_[now % kPeriods];

    note.number = 0;
    note.passed = so_far.passed;
    note.rejected = so_far.rejected;
    note.rejected_dry_run = so_far.rejected_dry_run;
    note.failed = so_far.failed;
    note.clients = 0;
    note.rejected_clients = 0;
    note.number = now;
}

template <uint64_t kSeconds, size_t kPeriods>
Clients History<kSeconds, kPeriods>::clients_at(uint64_t at_s) const noexcept
{
    uint64_t number = at_s / kSeconds;
    uint64_t running = running_.load();
    const PeriodNote &note = notes_[number % kPeriods];

    if (number == number_of(running)) {
        unsigned half = half_of(running);

        return Clients{clients_[half].estimate(),
                       rejected_clients_[half].estimate()};
    }

    return note.number.load() == number
               ? Clients{note.clients.load(), note.rejected_clients.load()}
               : Clients{};
}

template <uint64_t kSeconds, size_t kPeriods>
size_t History<kSeconds, kPeriods>::read(
    uint64_t now_s, const Tally &so_far,
    Period (&periods)[kPeriods]) const noexcept
{
    uint64_t now = std::max(now_s / kSeconds, number_of(running_.load()));
    Tally until = so_far;
    size_t count = 0;

    for (uint64_t number = now; number > 0 && now - number < kPeriods; number--)
    {
        const PeriodNote &note = notes_[number % kPeriods];

        if (note.number.load() != number) {
            continue;
        }

        Tally from = tally_of(note);
        Period period{number * kSeconds, difference(until, from),
                      clients_at(number * kSeconds)};

        if (!period.tally.is_empty() || period.clients.all > 0) {
            periods[count++] = period;
        }

        until = from;
    }

    std::reverse(periods, periods + count);

    return count;
}

template class History<60, 6 * 60>;
template class History<60 * 60, 7 * 24>;

}  // namespace sl
