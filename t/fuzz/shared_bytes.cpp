/*
 * What else workers share, metrics and breakers, with whatever a killed worker
 * may have left there: any bytes anywhere but in the locks, which cannot be
 * anything else than what the C library makes of them. Numbers may be wrong
 * then, but nobody leaves the memory, and everybody comes to an end.
 */

#include <algorithm>
#include <memory>
#include <new>

#include "fuzz.h"
#include "metrics/pure/sl_metrics.h"
#include "redis/pure/sl_shared_breakers.h"

namespace {

constexpr int64_t kNow = 1000000000000;

/* Memory of its own, so that to read past it is noticed. */
template <typename Shared>
class Scribbled {
  public:
    /* All bytes are the same but for some that the input says. */
    explicit Scribbled(Input *input) : input_(*input)
    {
        std::fill_n(bytes(), sizeof(Shared), input_.number<uint8_t>());

        for (uint8_t n = input_.number<uint8_t>() % 16; n > 0; n--) {
            size_t place = input_.number<uint32_t>() % sizeof(Shared);
            size_t size = 1 + input_.number<uint8_t>() % 32;

            for (; size > 0 && place < sizeof(Shared); size--, place++) {
                bytes()[place] = input_.number<uint8_t>();
            }
        }
    }

    void put_lock(size_t place)
    {
        (new (bytes() + place) sl::ProcessLock())->init();
    }

    Shared &get() { return *reinterpret_cast<Shared *>(bytes()); }

  private:
    struct alignas(64) Memory {
        uint8_t bytes[sizeof(Shared)];
    };

    Input &input_;
    std::unique_ptr<Memory> memory_{new Memory};

    uint8_t *bytes() { return memory_->bytes; }
};

void check_client(const sl::TopClient &client)
{
    char masked[sl::kMaxMaskedKey];

    check(client.text().size() <= sizeof(client.key));
    check(sl::mask_key(client, masked) <= sizeof(masked));
}

void read_zone(sl::ZoneMetrics &zone, int64_t now_ms, int64_t window_ms)
{
    auto now_s = static_cast<uint64_t>(now_ms / 1000);
    static sl::Period minutes[sl::MinuteHistory::kLength];
    static sl::Period hours[sl::HourHistory::kLength];
    static sl::ZoneMetrics::Top clients;
    static sl::ZoneMetrics::Top rejected;

    check(zone.minutes.read(now_s, zone.tally(), minutes)
          <= sl::MinuteHistory::kLength);
    check(zone.hours.read(now_s, zone.tally(), hours)
          <= sl::HourHistory::kLength);
    zone.minutes.clients_at(now_s);
    zone.hours.clients_at(now_s - 3600);
    zone.read_top(now_ms, window_ms, &clients, &rejected);
    zone.settlements.are_any();

    for (const sl::ZoneMetrics::Top *top : {&clients, &rejected}) {
        check(top->count <= sl::ZoneMetrics::kTopShown);
        std::for_each(top->clients, top->clients + top->count, check_client);
    }
}

void fuzz_zone(Input *input)
{
    Scribbled<sl::ZoneMetrics> scribbled(input);
    sl::ZoneMetrics &zone = scribbled.get();
    sl::Persistent persistent;

    /* only the lists stand behind it */
    scribbled.put_lock(sizeof(zone) - 2 * sizeof(sl::TopList)
                       - sizeof(sl::ProcessLock));

    int64_t now_ms = kNow + input->number<uint32_t>();
    int64_t window_ms = int64_t{1} + input->number<uint32_t>();
    std::string key = input->text_before('\n');

    read_zone(zone, now_ms, window_ms);

    while (!input->is_empty()) {
        auto kind = input->number<uint8_t>();
        sl::ZoneEvent event{
            static_cast<sl::ZoneResult>(kind % sl::kZoneResults),
            kind % (sl::kFoundUsed + 1),
            false,
            false,
            false,
            key};

        zone.record(event, input->number<uint64_t>(), now_ms, window_ms,
                    &persistent);
        check(persistent.windows == 0
              || persistent.masked_size <= sizeof(persistent.masked));
        zone.record({input->number<int64_t>(), static_cast<int64_t>(kind),
                     kind % 2 == 0});
        now_ms += input->number<uint32_t>();
    }

    read_zone(zone, now_ms, window_ms);

    /* the history goes on from what it found */
    uint64_t passed = zone.tally().passed;

    zone.record({sl::ZoneResult::kPassed, 0, false, false, false, key}, 1,
                now_ms, window_ms, &persistent);
    check(zone.tally().passed == passed + 1);
}

void fuzz_breakers(Input *input)
{
    constexpr size_t kPlaces = sl::SharedBreakers::kPlaces;
    Scribbled<sl::SharedBreakers> scribbled(input);
    sl::SharedBreakers &breakers = scribbled.get();
    int64_t now = kNow + input->number<uint32_t>();
    std::string server = input->text_before('\n');

    /* the note, which begins with it, is what a place ends with */
    for (size_t i = 1; i <= kPlaces; i++) {
        scribbled.put_lock(i * sizeof(breakers) / kPlaces
                           - sizeof(sl::OutageNote));
    }

    while (!input->is_empty()) {
        sl::BreakerState *state = breakers.of(server, now);
        auto kind = input->number<uint8_t>();
        auto random = input->number<uint32_t>();
        uint64_t worker = kind % sl::BreakerState::kMaxWorkers;

        check(breakers.open_count() <= kPlaces);
        now += random % 10000;
        server = input->text_before('\n');

        if (state == nullptr) {
            continue;
        }

        sl::Breaker breaker(*state);

        switch (kind % 6) {
        case 0:
            breaker.succeeded();
            breaker.set_connected(worker, kind & 16);
            break;
        case 1:
            breaker.failed(now, random);
            break;
        case 2:
            breaker.failed_for_all(now, random % 5000, random);
            check(breaker.is_open());
            break;
        case 3:
            breaker.probe_failed(breaker.take_probe(now, 1000), now, 0, random);
            break;
        case 4:
            breaker.probe_succeeded(breaker.take_probe_early(now, 1000), now);
            check(!breaker.is_open());
            break;
        default:
            breaker.is_connected_elsewhere(worker);
            breaker.is_news(random);
            breaker.explain(server, server);
        }

        sl::Outage outage = breaker.outage(now);

        check(outage.server().size() <= sl::Outage::kMaxServer);
        check(outage.reason().size() <= sl::Outage::kMaxReason);
    }

    size_t place = 0;
    sl::Outage outage;

    while (breakers.next_outage(&place, now, &outage)) {
        check(place <= kPlaces);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Input input(data, size);

    if (input.number<uint8_t>() % 2 == 0) {
        fuzz_zone(&input);
    } else {
        fuzz_breakers(&input);
    }

    return 0;
}
