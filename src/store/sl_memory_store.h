/*
 * The store that counts in this nginx's own shared memory: exact for all its
 * workers, and still there after a reload. Answers at once.
 */

#pragma once

#include "store/sl_shared_memory.h"
#include "store/sl_store.h"

namespace sl {

class MemoryStore final : public Store {
  public:
    explicit MemoryStore(SharedMemory &table) noexcept : table_(table) {}

    std::string_view kind() const noexcept override { return "memory"; }

    PendingQuestion *ask(const Query &query, AnswerReceiver &,
                         Answer *answer) noexcept override
    {
        answer->known = table_.ask(query.limits, query.count, answer->states,
                                   &answer->time_us);
        answer->error = StoreError::kMemory;

        return nullptr;
    }

    void take_back(const Query &query, int64_t time_us) noexcept override
    {
        table_.take_back(query.limits, query.count, time_us);
    }

    void start() noexcept override {}
    void stop() noexcept override {}

  private:
    SharedMemory &table_;
};

}  // namespace sl
