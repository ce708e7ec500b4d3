#include "redis/pure/sl_shared_breakers.h"

#include <algorithm>

namespace sl {

namespace {

/* FNV-1a, but never 0. */
uint32_t hash_of(std::string_view server)
{
    uint32_t hash = 0x811c9dc5;

    for (unsigned char ch : server) {
        hash = (hash ^ ch) * 0x01000193;
    }

    return hash != 0 ? hash : 1;
}

uint64_t make_owner(uint32_t hash, uint32_t now_s)
{
    return uint64_t{hash} << 32 | now_s;
}

/*
 * How long nobody has asked for a place; the longest there is if it has never
 * been anybody's. The clock of whoever asked last may be ahead of this one:
 * each worker reads it once in a turn of its event loop.
 */
int64_t idle_for(uint64_t owner, uint32_t now_s)
{
    auto since = static_cast<int32_t>(now_s - static_cast<uint32_t>(owner));

    return owner == 0 ? INT64_MAX : std::max(since, 0);
}

}  // namespace

BreakerState *SharedBreakers::of(std::string_view server,
                                 int64_t now_ms) noexcept
{
    uint32_t hash = hash_of(server);
    auto now_s = static_cast<uint32_t>(now_ms / 1000);

    /* A worker that loses a place to another one looks again: perhaps that one
     * took it for the same server. */
    for (size_t tries = 0; tries < kPlaces; tries++) {
        Place *idlest = nullptr;
        uint64_t its_owner = 0;
        int64_t longest = kIdleMs / 1000 - 1;

        for (size_t i = 0; i < kPlaces; i++) {
            Place &place = places_[(hash + i) % kPlaces];
            uint64_t owner = place.owner.load();

            if (owner >> 32 == hash) {
                place.owner.compare_exchange_strong(owner,
                                                    make_owner(hash, now_s));
                return &place.state;
            }

            if (idle_for(owner, now_s) > longest) {
                idlest = &place;
                its_owner = owner;
                longest = idle_for(owner, now_s);
            }
        }

        if (idlest == nullptr) {
            return nullptr;
        }

        if (idlest->owner.compare_exchange_strong(its_owner,
                                                  make_owner(hash, now_s))) {
            Breaker(idlest->state).reset();
            return &idlest->state;
        }
    }

    return nullptr;
}

unsigned SharedBreakers::open_count() const noexcept
{
    unsigned count = 0;

    for (const Place &place : places_) {
        count += place.state.next_probe.load() != 0;
    }

    return count;
}

bool SharedBreakers::next_outage(size_t *place, int64_t now_ms,
                                 Outage *outage) noexcept
{
    while (*place < kPlaces) {
        Breaker breaker(places_[(*place)++].state);

        if (breaker.is_open()) {
            *outage = breaker.outage(now_ms);
            return true;
        }
    }

    return false;
}

}  // namespace sl
