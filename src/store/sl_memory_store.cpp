#include "store/sl_memory_store.h"

#include "base/sl_clock.h"

namespace sl {

void MemoryStore::decide(const Query &query, Answer *answer) noexcept
{
    uint64_t evictions;
    Decided decided = decide_once(query, answer, &evictions);

    while (decided == Decided::kNotYet) {
        ngx_sched_yield();
        decided = decide_once(query, answer, &evictions);
    }

    memory_.report(evictions, decided == Decided::kNoMemory);

    answer->known = decided == Decided::kYes;
    answer->error = StoreError::kMemory;
}

Decided MemoryStore::decide_once(const Query &query, Answer *answer,
                                 uint64_t *evictions) noexcept
{
    SharedMemory::Locked table = memory_.locked();

    Decided decided = table->ask(query.limits, query.count, monotonic_us(),
                                 answer->states, &answer->time_us);

    *evictions = table->stats().evictions;

    return decided;
}

void MemoryStore::take_back(const Query &query, int64_t time_us) noexcept
{
    memory_.locked()->take_back(query.limits, query.count, time_us);
}

PendingQuestion *MemoryStore::intervene(const LimitQuery &,
                                        const Intervention &,
                                        OperatorReceiver &receiver) noexcept
{
    ClientAnswer answer{};

    answer.error = StoreError::kUnavailable;
    receiver.receive(answer);

    return nullptr;
}

PendingQuestion *MemoryStore::list_rulings(std::string_view, std::string_view,
                                           OperatorReceiver &receiver) noexcept
{
    RulingsAnswer answer{};

    answer.error = StoreError::kUnavailable;
    receiver.receive(answer);

    return nullptr;
}

}  // namespace sl
