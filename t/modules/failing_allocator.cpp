/*
 * Stands between nginx, the module and hiredis and their memory, for
 * t/allocation_failure.t: any allocation can be made to fail. The linker sends
 * them here (scripts/build-sanitized-nginx); the allocations of nginx's slab
 * pools, of which the module has its shared memory, count as well.
 *
 * The test steers it by a file that both have mapped, whose name is in the
 * environment: SLIDING_LIMIT_ALLOCATIONS. t/lib/SlidingLimit/Allocations.pm is
 * the other side.
 */

#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>

extern "C" {

/* Where the program begins in memory; the linker knows. */
extern const char __executable_start;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
int __real_posix_memalign(void **memory, size_t alignment, size_t size);
void __real_free(void *memory);
void *__real_ngx_slab_alloc(void *pool, size_t size);
void *__real_ngx_slab_calloc(void *pool, size_t size);
}

namespace {

constexpr int kMostFrames = 48;
constexpr int kMostSpared = 8;

/* What is in the file, in this order. */
struct Control {
    /* The process of which all this tells, and in which allocations fail. */
    int64_t pid;

    /* The next process that is forked becomes that process. */
    int64_t next_child;

    /* The first and the last allocation to fail, counted from 1. */
    int64_t first;
    int64_t last;

    /* So many were asked for, so many of these refused, and so many should have
     * been but for whom they were for. */
    int64_t asked;
    int64_t refused;
    int64_t spared;

    /* More were given than were given back by so many. */
    int64_t live;

    /* If there is an end: for each allocation that code between these addresses
     * asks for, a process is forked in which it fails. How that process has
     * ended is told to stderr. */
    int64_t branch_begin;
    int64_t branch_end;

    /* Functions, each from one address to another, that have no answer to a
     * failure but to end the process. */
    int64_t spares;
    int64_t spare[kMostSpared][2];

    /* Who asked for the first that was refused, from the inside out: addresses
     * in the program. */
    int64_t frames;
    int64_t frame[kMostFrames];
};

Control nobodys;
Control *control = &nobodys;

void enter_child()
{
    if (control->next_child) {
        control->next_child = 0;
        control->pid = getpid();
    }
}

__attribute__((constructor)) void map_control()
{
    const char *name = getenv("SLIDING_LIMIT_ALLOCATIONS");
    int file = name != nullptr ? open(name, O_RDWR) : -1;
    void *frame;

    if (file < 0) {
        return;
    }

    void *mapped = mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE,
                        MAP_SHARED, file, 0);

    close(file);

    if (mapped == MAP_FAILED) {
        return;
    }

    control = static_cast<Control *>(mapped);
    enter_child();
    pthread_atfork(nullptr, nullptr, enter_child);

    /* the first time it loads a library */
    backtrace(&frame, 1);
}

/* A failure must not make anybody wait for longer. */
constexpr unsigned kBranchSeconds = 20;

struct Callers {
    int64_t frames;
    int64_t frame[kMostFrames];

    Callers()
    {
        void *address[kMostFrames];

        frames = backtrace(address, kMostFrames);

        for (int64_t i = 0; i < frames; i++) {
            frame[i] =
                static_cast<const char *>(address[i]) - &__executable_start;
        }
    }

    bool are_in(int64_t begin, int64_t end) const
    {
        for (int64_t i = 0; i < frames; i++) {
            if (frame[i] > begin && frame[i] <= end) {
                return true;
            }
        }

        return false;
    }

    bool are_spared() const
    {
        for (int64_t i = 0; i < control->spares; i++) {
            if (are_in(control->spare[i][0], control->spare[i][1])) {
                return true;
            }
        }

        return false;
    }

    void note() const
    {
        memcpy(control->frame, frame, sizeof(frame));
        control->frames = frames;
    }

    void tell(int status) const
    {
        dprintf(STDERR_FILENO, "branch %d", status);

        for (int64_t i = 0; i < frames; i++) {
            dprintf(STDERR_FILENO, " %" PRIx64, frame[i]);
        }

        dprintf(STDERR_FILENO, "\n");
    }
};

bool is_branched()
{
    static bool is_branch;

    if (is_branch) {
        return false;
    }

    Callers callers;
    int status = 0;

    if (!callers.are_in(control->branch_begin, control->branch_end)) {
        return false;
    }

    pid_t pid = fork();

    if (pid == 0) {
        is_branch = true;
        alarm(kBranchSeconds);
        errno = ENOMEM;
        return true;
    }

    waitpid(pid, &status, 0);
    callers.tell(status);

    return false;
}

bool is_watched()
{
    static pid_t pid;

    if (control == &nobodys) {
        return false;
    }

    /* nginx's workers are forked */
    if (pid == 0 || control->pid != pid) {
        pid = getpid();
    }

    return control->pid == pid;
}

bool is_refused()
{
    if (control->branch_end != 0) {
        return is_branched();
    }

    if (!is_watched()) {
        return false;
    }

    control->asked++;

    if (control->asked < control->first || control->asked > control->last) {
        return false;
    }

    Callers callers;

    if (callers.are_spared()) {
        control->spared++;
        return false;
    }

    if (control->refused++ == 0) {
        callers.note();
    }

    errno = ENOMEM;

    return true;
}

void *given(void *memory)
{
    if (memory != nullptr && is_watched()) {
        control->live++;
    }

    return memory;
}

void give_back(void *memory)
{
    if (memory != nullptr && is_watched()) {
        control->live--;
    }

    __real_free(memory);
}

void *allocate(size_t size)
{
    return is_refused() ? nullptr : given(__real_malloc(size));
}

void *allocate_or_throw(size_t size)
{
    void *memory = allocate(size);

    if (memory == nullptr) {
        throw std::bad_alloc();
    }

    return memory;
}

}  // namespace

extern "C" {

void *__wrap_malloc(size_t size)
{
    return allocate(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return is_refused() ? nullptr : given(__real_calloc(count, size));
}

void *__wrap_realloc(void *memory, size_t size)
{
    if (is_refused()) {
        return nullptr;
    }

    void *moved = __real_realloc(memory, size);

    return memory == nullptr ? given(moved) : moved;
}

int __wrap_posix_memalign(void **memory, size_t alignment, size_t size)
{
    if (is_refused()) {
        return ENOMEM;
    }

    int error = __real_posix_memalign(memory, alignment, size);

    if (error == 0) {
        given(*memory);
    }

    return error;
}

char *__wrap_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    void *copy = allocate(size);

    return copy != nullptr ? static_cast<char *>(memcpy(copy, text, size))
                           : nullptr;
}

void __wrap_free(void *memory)
{
    give_back(memory);
}

void *__wrap_ngx_slab_alloc(void *pool, size_t size)
{
    return is_refused() ? nullptr : __real_ngx_slab_alloc(pool, size);
}

void *__wrap_ngx_slab_calloc(void *pool, size_t size)
{
    return is_refused() ? nullptr : __real_ngx_slab_calloc(pool, size);
}
}

void *operator new(size_t size)
{
    return allocate_or_throw(size);
}

void *operator new[](size_t size)
{
    return allocate_or_throw(size);
}

void *operator new(size_t size, const std::nothrow_t &) noexcept
{
    return allocate(size);
}

void *operator new[](size_t size, const std::nothrow_t &) noexcept
{
    return allocate(size);
}

void operator delete(void *memory) noexcept
{
    give_back(memory);
}

void operator delete[](void *memory) noexcept
{
    give_back(memory);
}

void operator delete(void *memory, size_t) noexcept
{
    give_back(memory);
}

void operator delete[](void *memory, size_t) noexcept
{
    give_back(memory);
}
