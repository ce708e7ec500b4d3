/*
 * Calls that wait for a connection: those that settle something, which wait for
 * as long as it matters; and any others while it is not known yet where to
 * connect to, or the server has not let us in, for as long as their time lasts.
 */

#pragma once

#include "redis/sl_redis_call.h"

namespace sl {

class Backlog {
  public:
    size_t size() const noexcept { return calls_.size(); }

    /* For one that settles something. Given back if too many wait. */
    [[nodiscard]] CallPtr postpone(CallPtr call) noexcept;

    void hold(CallPtr call) noexcept { calls_.push(std::move(call)); }

    /*
     * Hands each of them to `send`, a function that may not be able to take it
     * over: then it goes on waiting. Those that nobody wants any more are gone.
     */
    template <typename Send>
    void send_all(Send send) noexcept
    {
        /* as many as there are: what cannot be sent goes to the end */
        for (size_t n = calls_.size(); n > 0; n--) {
            CallPtr call = calls_.pop();

            if (!call->is_wanted()) {
                continue;
            }

            /* nobody has waited for it so far */
            if (call->settles()) {
                call->start_over();
            }

            call = send(std::move(call));

            if (call != nullptr) {
                hold(std::move(call));
            }
        }
    }

    /* Whoever asks does not wait for the server's return. */
    void drop_questions() noexcept;

    void clear() noexcept;

  private:
    CallQueue calls_;
};

}  // namespace sl
