/* Processes to test what they share. */

#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

/* Memory, all zero, that children share. */
class SharedMemory {
  public:
    explicit SharedMemory(size_t size)
        : size_(size), memory_(mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_ANONYMOUS, -1, 0))
    {
        assert_true(memory_ != MAP_FAILED);
    }

    ~SharedMemory() { munmap(memory_, size_); }

    SharedMemory(const SharedMemory &) = delete;
    SharedMemory &operator=(const SharedMemory &) = delete;

    void *get() const { return memory_; }

  private:
    size_t size_;
    void *memory_;
};

/* A child that has done something, and then waits until it is killed. */
class Child {
  public:
    template <typename Function>
    explicit Child(Function function)
    {
        int is_done[2];
        char byte;

        assert_int_equal(pipe(is_done), 0);
        pid_ = fork();

        if (pid_ == 0) {
            function();

            while (write(is_done[1], "", 1) == 1) {
                pause();
            }

            _exit(1);
        }

        close(is_done[1]);
        assert_int_equal(read(is_done[0], &byte, 1), 1);
        close(is_done[0]);
    }

    ~Child() { die(); }

    Child(const Child &) = delete;
    Child &operator=(const Child &) = delete;

    void stop() const { kill(pid_, SIGSTOP); }

    /*
     * Kills it, but does not wait for it: so there is a process of this number,
     * as if the number had been given to another one.
     */
    void die_with_number_in_use() const
    {
        siginfo_t end;

        kill(pid_, SIGKILL);
        waitid(P_PID, static_cast<id_t>(pid_), &end, WEXITED | WNOWAIT);
        assert_int_equal(kill(pid_, 0), 0);
    }

    void die()
    {
        if (pid_ != 0) {
            kill(pid_, SIGKILL);
            waitpid(pid_, nullptr, 0);
            pid_ = 0;
        }
    }

  private:
    pid_t pid_;
};
