/*
 * A clock that can be set while a server runs, for that server alone: to be
 * loaded with LD_PRELOAD. What the server reads as the time of day is the true
 * one and so many microseconds as the file $CHAOS_CLOCK holds at that moment,
 * as one signed 64-bit number. CLOCK_MONOTONIC stays as it is, as it does when
 * a real clock is set.
 */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t kSecond = 1000000000;
static const volatile int64_t *offset_us;
static int (*true_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void find_offset(void)
{
    const char *path = getenv("CHAOS_CLOCK");
    int file = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *map;

    true_clock_gettime = (int (*)(clockid_t, struct timespec *))dlsym(
        RTLD_NEXT, "clock_gettime");

    if (file < 0) {
        return;
    }

    map = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    close(file);

    if (map != MAP_FAILED) {
        offset_us = map;
    }
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int64_t time;

    if (true_clock_gettime == NULL) {
        find_offset(); /* another constructor was first */
    }

    if (true_clock_gettime(clock, now) != 0) {
        return -1;
    }

    if (offset_us != NULL
        && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    {
        time = now->tv_sec * kSecond + now->tv_nsec + *offset_us * 1000;
        now->tv_sec = time / kSecond;
        now->tv_nsec = time % kSecond;
    }

    return 0;
}

int gettimeofday(struct timeval *now, void *zone)
{
    struct timespec time;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &time);
    now->tv_sec = time.tv_sec;
    now->tv_usec = time.tv_nsec / 1000;

    return 0;
}

time_t time(time_t *to)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);

    if (to != NULL) {
        *to = now.tv_sec;
    }

    return now.tv_sec;
}
