/* How much of the memory a call looks at while others wait. */

#include <signal.h>
#include <sys/mman.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "memory_table.h"

namespace {

using sl::Decided;
using sl::LimitQuery;
using sl::LimitState;
using sl::MemoryTable;

/* Memory that knows how many of its pages somebody has looked at. */
class WatchedMemory {
  public:
    static constexpr size_t kPage = 4096;

    explicit WatchedMemory(size_t size)
        : size_(size), memory_(mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
    {
        const uint8_t secret[MemoryTable::kSecretSize] = {};
        struct sigaction action = {};

        assert_true(memory_ != MAP_FAILED);
        MemoryTable::format(memory_, size, secret);

        action.sa_sigaction = note;
        action.sa_flags = SA_SIGINFO;
        sigaction(SIGSEGV, &action, &before_);
        watched_ = this;
    }

    ~WatchedMemory()
    {
        sigaction(SIGSEGV, &before_, nullptr);
        munmap(memory_, size_);
    }

    void *get() const { return memory_; }

    template <typename Function>
    unsigned pages_seen(Function function)
    {
        seen_ = 0;
        mprotect(memory_, size_, PROT_NONE);
        function();
        mprotect(memory_, size_, PROT_READ | PROT_WRITE);

        return seen_;
    }

  private:
    static void note(int, siginfo_t *info, void *)
    {
        auto address = reinterpret_cast<uintptr_t>(info->si_addr);
        auto begin = reinterpret_cast<uintptr_t>(watched_->memory_);

        if (address < begin || address >= begin + watched_->size_) {
            abort();
        }

        watched_->seen_++;
        mprotect(reinterpret_cast<void *>(address & ~(kPage - 1)), kPage,
                 PROT_READ | PROT_WRITE);
    }

    static WatchedMemory *watched_;

    size_t size_;
    void *memory_;
    struct sigaction before_;
    unsigned seen_ = 0;
};

WatchedMemory *WatchedMemory::watched_;

/* A client with very many requests. */
struct Crowd {
    static constexpr int64_t kMany = 100000;
    static constexpr size_t kSize = 4 << 20;

    WatchedMemory memory;
    MemoryTable table;
    LimitQuery limit;
    LimitState state{};
    int64_t time = 0;
    int64_t now = kSecond;

    Crowd()
        : memory(kSize), table(memory.get(), kSize),
          limit(limit_of("a", 1 << 30))
    {}

    Decided ask() { return table.ask(&limit, 1, now, &state, &time); }

    void fill(int64_t many = kMany)
    {
        for (int64_t i = 0; i < many; i++, now++) {
            assert_true(ask() == Decided::kYes);
        }
    }

    void take_back()
    {
        limit.place = state.place;
        table.settle(&limit, 1, time, time);
    }

    unsigned pages_of_asking(Decided expected)
    {
        Decided decided;
        unsigned pages = memory.pages_seen([&] { decided = ask(); });

        assert_true(decided == expected);

        return pages;
    }

    /* Until it is decided; returns in how many calls. */
    unsigned calls_until_decided(unsigned most_pages)
    {
        for (unsigned calls = 1;; calls++) {
            Decided decided;

            assert_true(memory.pages_seen([&] { decided = ask(); })
                        <= most_pages);

            if (decided != Decided::kNotYet) {
                return calls;
            }
        }
    }
};

/* A header, a slot of the hash table, a key, and two or three blocks. */
constexpr unsigned kFewPages = 8;

/* The same, and all blocks that may be read or dropped at a time: each may have
 * a page of its own, but here they are close together. */
constexpr unsigned kSomePages = 2 * 512 / 64 + kFewPages;

void taking_back_looks_at_few_cells_however_many_there_are(void **)
{
    for (bool is_killed : {false, true}) {
        Crowd crowd;

        crowd.fill(Crowd::kMany / 2);

        LimitState middle = crowd.state;
        int64_t time_of_middle = crowd.time;

        crowd.fill(Crowd::kMany / 2);

        LimitState recent = crowd.state;
        int64_t time_of_recent = crowd.time;

        crowd.fill(100);

        if (is_killed) {
            crowd.table.leave_half_done();
            crowd.fill(1);
            assert_int_equal(crowd.table.stats().recoveries, 1);
        }

        int64_t used = crowd.state.used;

        assert_true(crowd.memory.pages_seen([&] { crowd.take_back(); })
                    <= kFewPages);

        crowd.state = recent;
        crowd.time = time_of_recent;
        assert_true(crowd.memory.pages_seen([&] { crowd.take_back(); })
                    <= kFewPages);

        crowd.state = middle;
        crowd.time = time_of_middle;
        assert_true(crowd.memory.pages_seen([&] { crowd.take_back(); })
                    <= kFewPages);

        assert_true(crowd.pages_of_asking(Decided::kYes) <= kFewPages);
        assert_int_equal(crowd.state.used, used - 3 + 1);
    }
}

void very_many_that_leave_at_once_are_dropped_in_several_calls(void **)
{
    Crowd crowd;

    crowd.fill();
    crowd.now += crowd.limit.window_us - Crowd::kMany / 2;

    /* so that no call has to drop more than 512 blocks of 7 */
    unsigned calls = crowd.calls_until_decided(kSomePages);

    assert_in_range(calls, Crowd::kMany / 2 / 7 / 512,
                    Crowd::kMany / 2 / 7 / 512 + 2);
    assert_int_equal(crowd.time, crowd.now);
    assert_int_equal(crowd.state.used, Crowd::kMany / 2);
    assert_int_equal(crowd.state.wait_us, 1);

    /* to drop all of them at once is no work */
    crowd.now += crowd.limit.window_us;
    assert_true(crowd.pages_of_asking(Decided::kYes) <= kFewPages);
    assert_int_equal(crowd.state.used, 1);
    assert_int_equal(crowd.table.stats().free_cells,
                     crowd.table.stats().cells - 2);
}

/* So many keys have expired that this one is still there when it is asked for,
 * in the very moment in which the last of its requests leaves. */
void all_that_leave_at_once_are_dropped_in_one_call(void **)
{
    Crowd crowd;
    int64_t time;

    for (int i = 0; i < 40; i++) {
        std::string key = "client" + std::to_string(i % 20);
        LimitQuery limit = limit_of(key, 5);

        crowd.table.ask(&limit, 1, crowd.now++, &crowd.state, &time);
    }

    crowd.fill(7 * 1000 + 1);
    crowd.now = crowd.time + crowd.limit.window_us;

    assert_true(crowd.pages_of_asking(Decided::kYes) <= kFewPages);
    assert_int_equal(crowd.state.used, 1);
}

void a_max_that_falls_makes_no_work_that_others_wait_for(void **)
{
    Crowd crowd;

    /* admitted, and then refused */
    crowd.limit.max = Crowd::kMany / 2;
    crowd.limit.counts_refused = true;
    crowd.fill();
    assert_false(crowd.state.admits);

    int64_t used = crowd.limit.max;

    assert_int_equal(crowd.state.used, used);

    for (int64_t max : {20000, 10000, 1000, 1}) {
        crowd.limit.max = max;
        crowd.now++;
        used -= 999;
        assert_true(crowd.pages_of_asking(Decided::kYes) <= 2 * kSomePages);
        assert_false(crowd.state.admits);
        assert_int_equal(crowd.state.used, used);
        assert_in_range(crowd.state.wait_us, 1, crowd.limit.window_us);
    }
}

/* One unit is left in each block. */
void units_that_are_dropped_may_stand_far_apart(void **)
{
    constexpr int64_t kBlocks = 3000;
    Crowd crowd;
    std::vector<std::pair<LimitState, int64_t>> counted;

    crowd.limit.counts_refused = true;

    for (int64_t i = 0; i < 7 * kBlocks; i++) {
        crowd.fill(1);
        counted.emplace_back(crowd.state, crowd.time);
    }

    for (size_t i = 0; i < counted.size(); i++) {
        if (i % 7 != 6) {
            crowd.state = counted[i].first;
            crowd.time = counted[i].second;
            crowd.take_back();
        }
    }

    crowd.limit.max = 1;
    assert_true(crowd.pages_of_asking(Decided::kYes) <= 2 * kSomePages);
    assert_int_equal(crowd.state.used, kBlocks - 999);
}

void to_make_room_is_no_walk_through_the_memory(void **)
{
    Crowd crowd;
    LimitState state;
    int64_t time;

    /* who has most of the memory, and many who have little */
    crowd.fill(300000);

    while (crowd.table.stats().evictions == 0) {
        std::string key = "client" + std::to_string(++crowd.now);
        LimitQuery limit = limit_of(key, 5);

        crowd.table.ask(&limit, 1, crowd.now, &state, &time);
    }

    /* each of the oldest keys may have a page of its own, and neighbours */
    for (int i = 0; i < 100; i++) {
        std::string key = "other" + std::to_string(++crowd.now);
        LimitQuery limit = limit_of(key, 5);

        assert_true(crowd.memory.pages_seen([&] {
            crowd.table.ask(&limit, 1, crowd.now, &state, &time);
        }) <= 2 * kFewPages);
    }

    assert_true(crowd.table.stats().evictions > 50);
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(taking_back_looks_at_few_cells_however_many_there_are),
        cmocka_unit_test(
            very_many_that_leave_at_once_are_dropped_in_several_calls),
        cmocka_unit_test(all_that_leave_at_once_are_dropped_in_one_call),
        cmocka_unit_test(a_max_that_falls_makes_no_work_that_others_wait_for),
        cmocka_unit_test(units_that_are_dropped_may_stand_far_apart),
        cmocka_unit_test(to_make_room_is_no_walk_through_the_memory),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
