/*
 * Refusals by a store that is far away, remembered by all workers of this
 * nginx: while one holds, a client that is over its limit is refused without
 * asking.
 *
 * They stand in the same table as the counts (see MemoryTable), behind its
 * lock. Whether there can be any is known without the lock, by a mark for each
 * zone: an ordinary request does not wait for it.
 *
 * The configuration says whose refusals last and can be remembered: those of
 * limits that have a refusal_mark.
 */

#pragma once

#include "store/sl_shared_memory.h"
#include "store/sl_store.h"

namespace sl {

/* What is remembered of a question's limits, in their order. */
struct Recollection {
    Recalled recalled[kMaxLimits];

    /* Of those with Recalled::kRefusal, as the store would say. */
    LimitState states[kMaxLimits];
};

class DenyCache {
  public:
    explicit DenyCache(SharedMemory &memory) noexcept : memory_(memory) {}

    /*
     * Whether one of these limits is known to refuse. Not if it is time to ask
     * the store about another (nobody has for max_age_us): then all are asked
     * about, and the store's answer tells whether that refusal still holds.
     */
    bool recall(const Query &query, int64_t now_us, int64_t max_age_us,
                Recollection *recollection) noexcept;

    /* The store, asked at `asked_us`, has refused. */
    void remember(const LimitQuery &limit, const LimitState &state,
                  int64_t asked_us) noexcept;

    /* The store has admitted such a request, against expectation. */
    void forget(const LimitQuery &limit) noexcept;

    /* An operator has changed something in the zone with this refusal_mark:
     * whatever its store has been asked so far, refusals do not hold any more,
     * nor those that it has yet to answer. */
    void forget_all(RefusalMark mark) noexcept;

    /* A request is taken back there: refusals that the store has yet to answer
     * may be due to it, and are not to be remembered. */
    void ignore_what_is_asked(RefusalMark mark) noexcept;

  private:
    SharedMemory &memory_;
};

}  // namespace sl
