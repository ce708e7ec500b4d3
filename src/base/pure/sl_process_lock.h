/* A lock in shared memory that outlives whoever holds it. */

#pragma once

#include <pthread.h>

namespace sl {

/*
 * Held by a process; if that dies, by nobody. It is the kernel that knows
 * whether it has died: its number may have been given to another since.
 */
class ProcessLock {
  public:
    /* Where no other process is yet. */
    void init() noexcept;

    /* False if it cannot be had within a reasonable time. */
    bool lock() noexcept;
    void unlock() noexcept { pthread_mutex_unlock(&mutex_); }

  private:
    bool try_lock() noexcept;

    pthread_mutex_t mutex_;
};

}  // namespace sl
