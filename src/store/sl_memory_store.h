/*
 * The store that counts in this nginx's own shared memory: exact for all its
 * workers, and still there after a reload. It answers at once.
 *
 * MemoryStore is what a check asks, SharedMemory lends it the table that all
 * workers share and its lock, and that MemoryTable does the counting.
 */

#pragma once

#include "store/sl_shared_memory.h"
#include "store/sl_store.h"

namespace sl {

class MemoryStore final : public Store {
  public:
    explicit MemoryStore(SharedMemory &memory) noexcept : memory_(memory) {}

    std::string_view kind() const noexcept override { return "memory"; }

    /* As ask(), for those who know that there is nothing to wait for. */
    void decide(const Query &query, Answer *answer) noexcept;

    PendingQuestion *ask(const Query &query, AnswerReceiver &,
                         Answer *answer) noexcept override
    {
        decide(query, answer);

        return nullptr;
    }

    void settle(const Query &query, int64_t time_us) noexcept override;

    PendingQuestion *intervene(const LimitQuery &client,
                               const Intervention &intervention,
                               OperatorReceiver &receiver) noexcept override;
    PendingQuestion *list_rulings(std::string_view zone,
                                  std::string_view cursor,
                                  OperatorReceiver &receiver) noexcept override;

    void start() noexcept override {}
    void stop() noexcept override {}

  private:
    Decided decide_once(const Query &query, Answer *answer,
                        uint64_t *evictions) noexcept;

    Decided intervene_once(const LimitQuery &client,
                           const Intervention &intervention, Standing *standing,
                           uint32_t *most) noexcept;

    SharedMemory &memory_;
};

}  // namespace sl
