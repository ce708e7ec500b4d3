/*
 * Calls that the script has not decided about, and that ask it once more.
 *
 * They are few at a time, as each gives Redis work, and all of them may be
 * about one client. What another request of that client would be told is known
 * meanwhile, without asking.
 */

#pragma once

#include <algorithm>
#include <iterator>

#include "redis/sl_redis_call.h"

namespace sl {

class UndecidedCalls {
  public:
    UndecidedCalls() noexcept : calls_() {}

    bool is_full() const noexcept
    {
        return std::count(std::begin(calls_), std::end(calls_), nullptr) == 0;
    }

    /* The call is on its way again. There may be no place for it, if it was
     * undecided on another channel. */
    void add(const RedisCall &call) noexcept { replace(nullptr, &call); }

    /* The call has a reply. */
    void remove(const RedisCall &call) noexcept { replace(&call, nullptr); }

    /* One of them asks the same; and the server has not ceased to reply. */
    bool has_like(const RedisCall &question) const noexcept
    {
        return std::any_of(std::begin(calls_), std::end(calls_),
                           [&](const RedisCall *call) {
                               return call != nullptr && !call->is_late()
                                      && call->asks_the_same(question);
                           });
    }

  private:
    static constexpr size_t kMost = 4;

    void replace(const RedisCall *what, const RedisCall *by) noexcept
    {
        auto *place = std::find(std::begin(calls_), std::end(calls_), what);

        if (place != std::end(calls_)) {
            *place = by;
        }
    }

    const RedisCall *calls_[kMost];
};

}  // namespace sl
