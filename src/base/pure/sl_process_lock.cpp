#include "base/pure/sl_process_lock.h"

#include <errno.h>
#include <sched.h>

namespace sl {

namespace {

/* Some ten milliseconds in all: a process that was preempted with the lock is
 * back by then. */
constexpr int kSpins = 100;
constexpr int kYields = 1000;

}  // namespace

void ProcessLock::init() noexcept
{
    pthread_mutexattr_t attributes;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex_, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

bool ProcessLock::try_lock() noexcept
{
    int error = pthread_mutex_trylock(&mutex_);

    /* what the lock protects can do with what a dead process has left */
    return error == 0
           || (error == EOWNERDEAD && pthread_mutex_consistent(&mutex_) == 0);
}

bool ProcessLock::lock() noexcept
{
    for (int yields = 0; yields < kYields; yields++) {
        for (int spins = 0; spins < kSpins; spins++) {
            if (try_lock()) {
                return true;
            }
        }

        sched_yield();
    }

    return false;
}

}  // namespace sl
