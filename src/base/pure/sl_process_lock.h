/*
 * A lock in shared memory that does not outlive whoever holds it: if the
 * process dies, nobody holds the lock. It is the kernel that knows whether it
 * has died: its number may have been given to another process since.
 *
 * The lock belongs to the thread that took it. A child that is forked does not
 * hold it, and cannot release it. The memory must stay where it is for as long
 * as the lock is held.
 *
 * The lock itself is a mutex of the C library, which changes it in steps that
 * the kernel can follow, wherever a process is killed. It has to be trusted: no
 * library can tell bytes that something else has written there from a mutex.
 */

#pragma once

#include <pthread.h>

namespace sl {

class ProcessLock {
  public:
    /* To be called where no other process is yet. */
    void init() noexcept;

    /* False if it cannot be had within a reasonable time. */
    bool lock() noexcept;

    /* False if somebody holds it: another process, or this one. */
    bool try_lock() noexcept;

    void unlock() noexcept { pthread_mutex_unlock(&mutex_); }

  private:
    pthread_mutex_t mutex_;
};

}  // namespace sl
