#include "sl_redis_routes.h"

namespace sl {

/* If all are taken, servers have to share one. */
BreakerState &SharedBreakers::of(std::string_view server) noexcept
{
    uint64_t hash = 0xcbf29ce484222325;

    for (unsigned char ch : server) {
        hash = (hash ^ ch) * 0x100000001b3;
    }

    for (size_t i = 0; i < kPlaces; i++) {
        size_t place = (hash + i) % kPlaces;
        uint64_t nobody = 0;

        if (taken_by_[place].compare_exchange_strong(nobody, hash)
            || nobody == hash) {
            return states_[place];
        }
    }

    return states_[hash % kPlaces];
}

unsigned SharedBreakers::open_count() const noexcept
{
    unsigned count = 0;

    for (const BreakerState &state : states_) {
        count += state.next_probe.load() != 0;
    }

    return count;
}

bool SharedBreakers::next_outage(size_t *place, int64_t now,
                                 Outage *outage) noexcept
{
    for (; *place < kPlaces; ++*place) {
        Breaker breaker(states_[*place]);

        if (breaker.is_open()) {
            *outage = breaker.outage(now, ngx_pid);
            ++*place;
            return true;
        }
    }

    return false;
}

}  // namespace sl
