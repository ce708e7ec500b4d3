#include "store/sl_memory_store.h"

#include "base/pure/sl_number.h"
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

void MemoryStore::settle(const Query &query, int64_t time_us) noexcept
{
    uint64_t evictions;
    Decided decided;

    {
        SharedMemory::Locked table = memory_.locked();

        decided =
            table->settle(query.limits, query.count, time_us, monotonic_us());
        evictions = table->stats().evictions;
    }

    memory_.report(evictions, decided == Decided::kNoMemory);
}

PendingQuestion *MemoryStore::intervene(const LimitQuery &client,
                                        const Intervention &intervention,
                                        OperatorReceiver &receiver) noexcept
{
    constexpr size_t kLongestReason = 128;

    ClientAnswer answer{};
    uint32_t most;
    Decided decided =
        intervene_once(client, intervention, &answer.standing, &most);

    while (decided == Decided::kNotYet) {
        ngx_sched_yield();
        decided = intervene_once(client, intervention, &answer.standing, &most);
    }

    u_char reason[kLongestReason];

    answer.known = decided == Decided::kYes;
    answer.error = StoreError::kMemory;

    if (!answer.known) {
        u_char *end = ngx_snprintf(reason, sizeof(reason),
                                   "no room for more than %uD bans and "
                                   "overrides; sliding_limit_memory must be "
                                   "larger",
                                   most);

        answer.reason = {reinterpret_cast<char *>(reason),
                         static_cast<size_t>(end - reason)};
    }

    receiver.receive(answer);

    return nullptr;
}

Decided MemoryStore::intervene_once(const LimitQuery &client,
                                    const Intervention &intervention,
                                    Standing *standing, uint32_t *most) noexcept
{
    SharedMemory::Locked table = memory_.locked();

    *most = table->most_rulings();

    return table->intervene(client, intervention, monotonic_us(), standing);
}

/* The cursor is the number of the entry to go on with. */
PendingQuestion *MemoryStore::list_rulings(std::string_view zone,
                                           std::string_view cursor,
                                           OperatorReceiver &receiver) noexcept
{
    RulingsAnswer answer{};
    RulingsPage page;
    u_char next[NGX_INT32_LEN];
    int64_t from = cursor.empty() ? 0 : parse_count(cursor);

    if (from < 0 || from > UINT32_MAX) {
        answer.is_cursor_wrong = true;
        receiver.receive(answer);
        return nullptr;
    }

    memory_.locked()->list_rulings(zone, static_cast<uint32_t>(from),
                                   monotonic_us(), &page);

    if (page.next != 0) {
        answer.cursor = {
            reinterpret_cast<char *>(next),
            static_cast<size_t>(ngx_sprintf(next, "%uD", page.next) - next)};
    }

    answer.known = true;
    answer.clients = page.clients;
    answer.count = page.count;
    receiver.receive(answer);

    return nullptr;
}

}  // namespace sl
