/*
 * How many requests per second the embedded store counts and takes back again,
 * by how many others of the same client are counted; with the last numbers
 * after a process was killed, and the table rebuilt. Prints a list of rounds.
 */

#include <time.h>

#include <cstdio>
#include <cstdlib>

#include "store/pure/sl_memory_table.h"

namespace {

constexpr size_t kSize = 64 << 20;
constexpr int kRounds = 10;
constexpr int kRequests = 200000;

/* Others that come in before a request is taken back. */
constexpr int kUnderWay = 32;

class Client {
  public:
    explicit Client(int64_t counted)
        : memory_(aligned_alloc(64, kSize)), table_(memory_, kSize), limit_{}
    {
        const uint8_t secret[sl::MemoryTable::kSecretSize] = {};

        sl::MemoryTable::format(memory_, kSize, secret);
        limit_.zone = "zone";
        limit_.key = "client";
        limit_.window_us = 3600000000;
        limit_.max = 1000000;
        limit_.cost = 1;
        limit_.provisional = true;

        for (int64_t i = 0; i < counted; i++) {
            ask();
        }
    }

    ~Client() { free(memory_); }

    Client(const Client &) = delete;
    Client &operator=(const Client &) = delete;

    void be_killed() { table_.leave_half_done(); }

    double taken_back_per_second()
    {
        sl::LimitQuery under_way[kUnderWay];
        int64_t times[kUnderWay];

        for (int i = 0; i < kUnderWay; i++) {
            under_way[i] = ask();
            times[i] = time_;
        }

        double start = cpu_seconds();

        for (int i = 0; i < kRequests; i++) {
            table_.settle(&under_way[i % kUnderWay], 1, times[i % kUnderWay],
                          now_);
            under_way[i % kUnderWay] = ask();
            times[i % kUnderWay] = time_;
        }

        double spent = cpu_seconds() - start;

        for (int i = 0; i < kUnderWay; i++) {
            table_.settle(&under_way[i], 1, times[i], now_);
        }

        return kRequests / spent;
    }

  private:
    /* Returns what takes it back. */
    sl::LimitQuery ask()
    {
        sl::LimitQuery counted = limit_;
        sl::LimitState state;

        table_.ask(&limit_, 1, ++now_, &state, &time_);
        counted.place = state.place;

        return counted;
    }

    static double cpu_seconds()
    {
        timespec now;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);

        return static_cast<double>(now.tv_sec)
               + static_cast<double>(now.tv_nsec) / 1e9;
    }

    void *memory_;
    sl::MemoryTable table_;
    sl::LimitQuery limit_;
    int64_t now_ = 1;
    int64_t time_ = 0;
};

}  // namespace

int main()
{
    Client few(100);
    Client many(400000);
    Client killed(400000);

    for (int i = 0; i < kRounds; i++) {
        killed.be_killed();

        /* rebuilds it */
        killed.taken_back_per_second();

        printf("%s{\"few\": %.0f, \"many\": %.0f, \"many_killed\": %.0f}",
               i > 0 ? ", " : "[", few.taken_back_per_second(),
               many.taken_back_per_second(), killed.taken_back_per_second());
    }

    puts("]");
}
