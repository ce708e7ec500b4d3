/* The embedded store's table; t/model compares its decisions with a model. */

#include "store/pure/sl_memory_table.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "unit.h"

namespace {

using sl::Decided;
using sl::LimitQuery;
using sl::LimitState;
using sl::MemoryTable;
using sl::Recalled;

constexpr int64_t kSecond = 1000000;

struct Free {
    void operator()(void *memory) const { free(memory); }
};

/* A table, and a client of it. */
struct Table {
    std::unique_ptr<void, Free> memory;
    MemoryTable table;

    explicit Table(size_t size = MemoryTable::kSmallestMemory)
        : memory(aligned_alloc(64, size)), table(memory.get())
    {
        const uint8_t secret[MemoryTable::kSecretSize] = {};

        MemoryTable::format(memory.get(), size, secret);
    }

    bool ask(const LimitQuery &limit, int64_t now, LimitState *state)
    {
        int64_t time;

        return ask(limit, now, state, &time);
    }

    bool ask(const LimitQuery &limit, int64_t now, LimitState *state,
             int64_t *time)
    {
        Decided decided = Decided::kNotYet;

        while (decided == Decided::kNotYet) {
            decided = table.ask(&limit, 1, now, state, time);
        }

        return decided == Decided::kYes;
    }

    /* What was counted then, as the state says. */
    void take_back(LimitQuery limit, const LimitState &state, int64_t time)
    {
        limit.place = state.place;
        table.take_back(&limit, 1, time);
    }

    /* Another store, asked at that time, has said so at once. */
    void remember(const LimitQuery &limit, int64_t wait, int64_t asked,
                  int64_t used = 5)
    {
        table.remember(limit, LimitState{false, false, used, wait}, asked,
                       asked);
    }

    bool knows(const LimitQuery &limit, int64_t now)
    {
        LimitState state;

        return table.recall(limit, now, sl::kAnyAge, &state)
               == Recalled::kRefusal;
    }

    /* How long that is still so. */
    int64_t wait(const LimitQuery &limit, int64_t now)
    {
        LimitState state;

        assert_true(table.recall(limit, now, sl::kAnyAge, &state)
                    == Recalled::kRefusal);
        assert_false(state.admits);
        assert_false(state.is_counted);

        return state.wait_us;
    }
};

LimitQuery limit_of(std::string_view key, int64_t max, unsigned buckets = 0)
{
    return {"zone", key, 3600 * kSecond, max, 1, buckets, false, false, false};
}

void soon_after_the_start_of_the_machine_buckets_count_as_ever(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5, 6);
    LimitState state;

    for (int i = 1; i <= 5; i++) {
        assert_true(t.ask(limit, i * kSecond, &state));
        assert_true(state.admits);
        assert_int_equal(state.used, i);
    }

    assert_true(t.ask(limit, 6 * kSecond, &state));
    assert_false(state.admits);
    assert_int_equal(state.wait_us, (7 * 600 - 6) * kSecond);

    t.table.leave_half_done();
    assert_true(t.ask(limit, 7 * kSecond, &state));
    assert_false(state.admits);
    assert_int_equal(state.used, 5);
    assert_int_equal(t.table.stats().recoveries, 1);
}

void who_keeps_coming_is_not_driven_out_by_those_who_come_once(void **)
{
    Table t;
    LimitState state;
    int64_t now = kSecond;

    for (int i = 0; i < 3; i++) {
        assert_true(t.ask(limit_of("offender", 3), ++now, &state));
    }

    for (int i = 0; i < 100000; i++) {
        std::string other = "other" + std::to_string(i);

        assert_true(t.ask(limit_of(other, 3), ++now, &state));
        assert_true(state.admits);
    }

    assert_true(t.table.stats().evictions > 90000);
    assert_true(t.ask(limit_of("offender", 3), ++now, &state));
    assert_false(state.admits);
}

void those_whose_window_has_passed_go_first_and_are_no_loss(void **)
{
    Table t;
    LimitState state;

    for (int64_t i = 0; i < 100000; i++) {
        std::string client = "client" + std::to_string(i);

        /* an hour's window: a hundred are in it at a time */
        assert_true(t.ask(limit_of(client, 3), (i + 1) * 36 * kSecond, &state));
    }

    assert_int_equal(t.table.stats().evictions, 0);
}

void a_client_that_takes_all_memory_has_no_answer(void **)
{
    Table t;
    LimitState state;
    int64_t now = kSecond;
    int counted = 0;

    while (t.ask(limit_of("greedy", 1000000), ++now, &state)) {
        counted++;
    }

    assert_true(counted > 2000);
    assert_true(t.ask(limit_of("greedy", 1000), ++now, &state));
    assert_false(state.admits);
    assert_true(t.ask(limit_of("other", 1), ++now, &state));
    assert_true(state.admits);
}

/* ---- taking back ---- */

/* A client's requests, and what is needed to take them back. */
struct Client {
    struct Counted {
        LimitState state;
        int64_t time;
    };

    Table &t;
    LimitQuery limit;
    std::vector<Counted> counted;

    Client(Table &table, const LimitQuery &query) : t(table), limit(query) {}

    void ask(int64_t now)
    {
        Counted c;

        assert_true(t.ask(limit, now, &c.state, &c.time));
        assert_true(c.state.is_counted);
        counted.push_back(c);
    }

    void take_back(size_t i)
    {
        t.take_back(limit, counted[i].state, counted[i].time);
    }

    int64_t used(int64_t now)
    {
        LimitQuery look = limit;
        LimitState state;

        look.cost = 0;
        assert_true(t.ask(look, now, &state));

        return state.used;
    }
};

void what_is_taken_back_counts_no_more_wherever_it_stands(void **)
{
    for (int64_t cost : {1, 3}) {
        Table t;
        Client client(t, limit_of("client", 1000));
        int64_t now = kSecond;
        int64_t left = 50 * cost;

        client.limit.cost = cost;

        for (int i = 0; i < 50; i++) {
            client.ask(++now);
        }

        /* in the middle, in front, at the end, and all that are left */
        for (size_t i : {20, 21, 19, 0, 1, 49, 48, 2}) {
            client.take_back(i);
            left -= cost;
            assert_int_equal(client.used(++now), left);

            /* once is enough */
            client.take_back(i);
            assert_int_equal(client.used(++now), left);
        }

        for (size_t i = 0; i < 50; i++) {
            client.take_back(i);
        }

        assert_int_equal(client.used(++now), 0);
        assert_int_equal(t.table.stats().free_cells, t.table.stats().cells - 1);
    }
}

void what_has_left_the_window_cannot_be_taken_back(void **)
{
    Table t;
    Client client(t, limit_of("client", 1000));
    constexpr int64_t kHour = 3600 * kSecond;

    for (int64_t i = 1; i <= 40; i++) {
        client.ask(i * kSecond);
    }

    /* half of them have */
    assert_int_equal(client.used(kHour + 20 * kSecond), 20);

    for (size_t i = 0; i < 20; i++) {
        client.take_back(i);
        assert_int_equal(client.used(kHour + 20 * kSecond), 20);
    }

    /* all have: their cells lie there as they were, and one is used again */
    client.ask(2 * kHour);

    for (size_t i = 0; i < 40; i++) {
        client.take_back(i);
        assert_int_equal(client.used(2 * kHour), 1);
    }

    client.take_back(40);
    assert_int_equal(client.used(2 * kHour), 0);
}

void who_was_forgotten_and_comes_again_is_taken_nothing_back_from(void **)
{
    Table t;
    Client client(t, limit_of("client", 1000));
    LimitState state;
    int64_t now = kSecond;

    for (int i = 0; i < 40; i++) {
        client.ask(++now);
    }

    for (int i = 0; t.table.stats().evictions == 0; i++) {
        std::string greedy = "greedy" + std::to_string(i);

        for (int k = 0; k < 20; k++) {
            assert_true(t.ask(limit_of(greedy, 1000), ++now, &state));
        }
    }

    while (client.used(++now) > 0) {
        std::string other = "other" + std::to_string(now);

        for (int k = 0; k < 50; k++) {
            assert_true(t.ask(limit_of(other, 1000), ++now, &state));
        }
    }

    client.ask(++now);
    client.ask(++now);

    for (size_t i = 0; i < 40; i++) {
        client.take_back(i);
        assert_int_equal(client.used(++now), 2);
    }

    client.take_back(40);
    assert_int_equal(client.used(++now), 1);
}

void a_place_that_never_was_is_not_looked_at(void **)
{
    Table t;
    Client client(t, limit_of("client", 1000));

    for (int64_t i = 1; i <= 10; i++) {
        client.ask(i * kSecond);
    }

    Client::Counted &first = client.counted[0];

    for (uint64_t place :
         {uint64_t{0}, uint64_t{1}, first.state.place + 1,
          first.state.place + 7, first.state.place + 255,
          first.state.place + 256, uint64_t{1} << 40, UINT64_MAX})
    {
        LimitState elsewhere = first.state;

        elsewhere.place = place;
        t.take_back(client.limit, elsewhere, first.time);
        assert_int_equal(client.used(11 * kSecond), 10);
    }

    /* another time, and another client */
    t.take_back(client.limit, first.state, first.time + 1);
    t.take_back(limit_of("other", 1000), first.state, first.time);
    assert_int_equal(client.used(11 * kSecond), 10);

    client.take_back(0);
    assert_int_equal(client.used(11 * kSecond), 9);
}

void one_request_is_taken_back_from_each_limit_by_itself(void **)
{
    Table t;
    LimitQuery limits[] = {limit_of("client", 9), limit_of("client", 9),
                           limit_of("client", 9, 6)};
    LimitState states[3];
    LimitState state;
    int64_t time;

    limits[1].zone = "other";

    for (int64_t i = 1; i <= 3; i++) {
        assert_true(t.table.ask(limits, 3, i, states, &time) == Decided::kYes);
    }

    for (int i = 0; i < 3; i++) {
        LimitQuery look = limits[i];

        t.take_back(limits[i], states[i], time);
        look.cost = 0;
        assert_true(t.ask(look, 4, &state));
        assert_int_equal(state.used, 2);
    }

    for (int i = 0; i < 2; i++) {
        LimitQuery look = limits[i];

        /* that of the other limit has the same time */
        t.take_back(limits[i], states[1 - i], time);
        look.cost = 0;
        assert_true(t.ask(look, 5, &state));
        assert_int_equal(state.used, 2);
    }
}

void what_was_taken_back_takes_no_memory(void **)
{
    for (unsigned buckets : {0, 6}) {
        Table t;
        Client client(t, limit_of("client", 1000, buckets));
        int64_t now = kSecond;

        /* one stays, and twenty are under way at any time */
        for (int i = 0; i < 21; i++) {
            client.ask(++now);
        }

        for (size_t i = 1; i < 20000; i++) {
            client.take_back(i);
            client.ask(++now);
        }

        /* each has a block of its own at most */
        assert_true(t.table.stats().free_cells
                    >= t.table.stats().cells - 1 - 21);
        assert_int_equal(t.table.stats().evictions, 0);
        assert_int_equal(client.used(++now), 21);
    }
}

/*
 * Counts and takes back without end, each in no order. Says beforehand what the
 * table may say then.
 */
struct Restless {
    struct Report {
        volatile int64_t at_least;
        volatile int64_t at_most;
        volatile int64_t calls;
    };

    static constexpr size_t kTableSize = 64 * 1024;

    [[noreturn]] static void run(void *memory, Report *report, int64_t now)
    {
        constexpr size_t kMost = 64;
        MemoryTable table(memory);
        LimitQuery limits[kMost];
        int64_t times[kMost] = {};
        uint32_t random = static_cast<uint32_t>(now);

        for (;; report->calls = report->calls + 1) {
            random = random * 1664525 + 1013904223;

            LimitQuery &limit = limits[(random >> 16) % kMost];
            int64_t &time = times[(random >> 16) % kMost];
            LimitState state;

            if (time != 0) {
                report->at_least = report->at_least - 1;
                table.take_back(&limit, 1, time);
                report->at_most = report->at_least;
                time = 0;
                continue;
            }

            limit = limit_of("client", 1000000);
            report->at_most = report->at_most + 1;
            table.ask(&limit, 1, ++now, &state, &time);
            report->at_least = report->at_most;
            limit.place = state.place;
        }
    }
};

void who_is_killed_at_any_moment_leaves_a_table_that_counts(void **)
{
    constexpr size_t kSize = Restless::kTableSize + 4096;
    void *memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    auto *report = reinterpret_cast<Restless::Report *>(
        static_cast<char *>(memory) + Restless::kTableSize);
    const uint8_t secret[MemoryTable::kSecretSize] = {};

    MemoryTable::format(memory, Restless::kTableSize, secret);

    MemoryTable table(memory);
    LimitQuery look = limit_of("client", 1000000);
    LimitState state;
    int64_t time;

    look.cost = 0;

    for (int64_t round = 1; round <= 200; round++) {
        int64_t now = round * 7200 * kSecond;

        *report = {};

        pid_t child = fork();

        if (child == 0) {
            Restless::run(memory, report, now);
        }

        while (report->calls < 200 && waitpid(child, nullptr, WNOHANG) == 0) {
            sched_yield();
        }

        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, nullptr, 0), child);

        now += 600 * kSecond;

        assert_true(table.ask(&look, 1, now, &state, &time) == Decided::kYes);
        assert_in_range(state.used, report->at_least, report->at_most);

        /* all have left: every cell but that of the key is free */
        now += 3600 * kSecond;
        assert_true(table.ask(&look, 1, now, &state, &time) == Decided::kYes);
        assert_int_equal(state.used, 0);
        assert_int_equal(table.stats().free_cells + table.stats().keys,
                         table.stats().cells);
    }

    assert_int_equal(table.stats().evictions, 0);
    assert_true(table.stats().recoveries > 0);
    munmap(memory, kSize);
}

/* ---- how much of the memory is looked at while others wait ---- */

/* Memory of which is known how many pages somebody has looked at. */
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

    WatchedMemory memory;
    MemoryTable table;
    LimitQuery limit;
    LimitState state{};
    int64_t time = 0;
    int64_t now = kSecond;

    Crowd()
        : memory(4 << 20), table(memory.get()), limit(limit_of("a", 1 << 30))
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
        table.take_back(&limit, 1, time);
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

/* With all blocks that may be read or dropped at a time, each of which may
 * have a page of its own, but here they are close together. */
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

    /* all of them at once are no work */
    crowd.now += crowd.limit.window_us;
    assert_true(crowd.pages_of_asking(Decided::kYes) <= kFewPages);
    assert_int_equal(crowd.state.used, 1);
    assert_int_equal(crowd.table.stats().free_cells,
                     crowd.table.stats().cells - 2);
}

void a_max_that_falls_makes_no_work_that_others_wait_for(void **)
{
    Crowd crowd;

    /* admitted, and then refused */
    crowd.limit.max = Crowd::kMany / 2;
    crowd.limit.counts_refused = true;
    crowd.fill();
    assert_false(crowd.state.admits);

    for (int64_t max : {20000, 10000, 1000, 1}) {
        crowd.limit.max = max;
        crowd.now++;
        assert_true(crowd.pages_of_asking(Decided::kYes) <= 2 * kSomePages);
        assert_false(crowd.state.admits);
        assert_true(crowd.state.used >= Crowd::kMany / 2 + max);
        assert_in_range(crowd.state.wait_us, 1, crowd.limit.window_us);
    }
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

/* ---- clocks that are set back ---- */

void if_the_clock_steps_back_nobody_waits_longer_than_a_window(void **)
{
    constexpr int64_t kStart = int64_t{1000} * 86400 * kSecond;

    for (unsigned buckets : {0, 6}) {
        for (int64_t step :
             {int64_t{1}, kSecond, 1800 * kSecond, 3600 * kSecond,
              7200 * kSecond, int64_t{900} * 86400 * kSecond})
        {
            Table t;
            LimitQuery limit = limit_of("client", 3, buckets);
            int64_t longest = limit.window_us;
            LimitState state;
            int64_t now = kStart;

            if (buckets > 0) {
                longest += longest / buckets;
            }

            for (int i = 0; i < 3; i++) {
                assert_true(t.ask(limit, now, &state));
                assert_true(state.admits);
            }

            /* nothing early */
            now -= step;
            assert_true(t.ask(limit, now, &state));
            assert_false(state.admits);
            assert_int_equal(state.used, 3);
            assert_in_range(state.wait_us, limit.window_us - 10, longest);

            int64_t wait = state.wait_us;

            assert_true(t.ask(limit, now + wait - 1, &state));
            assert_false(state.admits);
            assert_in_range(state.wait_us, 1, 10);

            assert_true(t.ask(limit, now + wait + 10, &state));
            assert_true(state.admits);
        }
    }
}

void a_clock_that_keeps_stepping_back_does_not_stop_time(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 1);
    LimitState state;
    int64_t now = int64_t{1000} * 86400 * kSecond;

    assert_true(t.ask(limit, now, &state));

    /* half an hour forwards, a day back */
    for (int i = 0; i < 10; i++) {
        now -= 86400 * kSecond;
        assert_true(t.ask(limit, now, &state));
        assert_int_equal(state.admits, i > 0 && i % 2 == 0);

        now += 1800 * kSecond;
        t.knows(limit, now);
    }
}

/* ---- refusals by other stores ---- */

void nothing_is_known_at_first(void **)
{
    Table t;
    LimitState state;

    assert_true(
        t.table.recall(limit_of("client", 5), kSecond, sl::kAnyAge, &state)
        == Recalled::kNothing);
    assert_int_equal(t.table.stats().keys, 0);
}

void a_refusal_is_known_until_the_moment_that_was_named(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);

    t.remember(limit, 900, kSecond);

    for (int64_t i = 0; i < 900; i++) {
        assert_int_equal(t.wait(limit, kSecond + i), 900 - i);
    }

    for (int64_t later : {900, 901, 1000, 1000000}) {
        assert_false(t.knows(limit, kSecond + later));
    }
}

void what_is_used_is_what_was_used_then(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);
    LimitState state;

    for (int64_t used : {int64_t{0}, int64_t{5}, int64_t{1} << 40}) {
        t.remember(limit, kSecond, kSecond, used);

        assert_true(t.table.recall(limit, kSecond + 1, sl::kAnyAge, &state)
                    == Recalled::kRefusal);
        assert_int_equal(state.used, used);
        assert_false(state.admits);
        assert_false(state.is_counted);
    }
}

void a_refusal_is_known_of_the_very_same_request_only(void **)
{
    for (unsigned buckets : {0, 6}) {
        Table t;
        LimitQuery limit = limit_of("client", 5, buckets);

        limit.cost = 2;
        t.remember(limit, 60 * kSecond, kSecond);

        LimitQuery other = limit;
        other.max = 6;
        assert_false(t.knows(other, 2 * kSecond));
        other.max = 4;
        assert_false(t.knows(other, 2 * kSecond));

        other = limit;
        other.cost = 1;
        assert_false(t.knows(other, 2 * kSecond));
        other.cost = 3;
        assert_false(t.knows(other, 2 * kSecond));

        other = limit;
        other.window_us++;
        assert_false(t.knows(other, 2 * kSecond));
        other.window_us = kSecond;
        assert_false(t.knows(other, 2 * kSecond));

        for (std::string_view zone : {"zon", "zones", "Zone", ""}) {
            other = limit;
            other.zone = zone;
            assert_false(t.knows(other, 2 * kSecond));
        }

        for (std::string_view key : {"clien", "clients", "Client", ""}) {
            other = limit;
            other.key = key;
            assert_false(t.knows(other, 2 * kSecond));
        }

        for (unsigned number : {0, 1, 5, 6, 7, 60}) {
            other = limit;
            other.buckets = number;
            assert_int_equal(t.knows(other, 2 * kSecond), number == buckets);
        }

        assert_true(t.knows(limit, 2 * kSecond));
    }
}

void refusals_of_several_requests_are_known_each(void **)
{
    Table t;

    for (int64_t max = 1; max <= 50; max++) {
        t.remember(limit_of("client", max), max * kSecond, kSecond, max);
    }

    for (int64_t max = 2; max <= 50; max++) {
        assert_int_equal(t.wait(limit_of("client", max), 2 * kSecond),
                         (max - 1) * kSecond);
    }

    assert_false(t.knows(limit_of("client", 1), 2 * kSecond));
}

void a_wait_is_counted_from_the_question_not_from_the_answer(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);

    t.table.remember(limit, LimitState{false, false, 5, 10 * kSecond}, kSecond,
                     3 * kSecond);

    assert_int_equal(t.wait(limit, 3 * kSecond), 8 * kSecond);
    assert_int_equal(t.wait(limit, 4 * kSecond), 7 * kSecond);
    assert_false(t.knows(limit, 11 * kSecond));
}

void a_clock_may_run_faster_by_a_thousandth(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);

    /* 9990009 and a thousandth of it are just less than ten seconds */
    t.remember(limit, 10 * kSecond, kSecond);
    assert_int_equal(t.wait(limit, kSecond + 9990009), 9991);
    assert_false(t.knows(limit, kSecond + 9990010));
    assert_false(t.knows(limit, kSecond + 9999999));
    assert_false(t.knows(limit, 11 * kSecond));

    /* since the question, too */
    t.table.remember(limit, LimitState{false, false, 5, 10 * kSecond}, kSecond,
                     9 * kSecond);
    assert_true(t.knows(limit, kSecond + 9990009));
    assert_false(t.knows(limit, kSecond + 9990010));
}

void after_a_while_one_has_to_ask_again(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);
    LimitState state;

    t.table.remember(limit, LimitState{false, false, 5, 100 * kSecond}, kSecond,
                     3 * kSecond);

    auto recall = [&](int64_t now) {
        return t.table.recall(limit, now, 5 * kSecond, &state);
    };

    /* since the question */
    assert_true(recall(6 * kSecond - 1) == Recalled::kRefusal);
    assert_true(recall(6 * kSecond) == Recalled::kAskAgain);

    /* one, and then nobody for as long */
    assert_true(recall(6 * kSecond) == Recalled::kRefusal);
    assert_int_equal(state.wait_us, 95 * kSecond);
    assert_true(recall(11 * kSecond - 1) == Recalled::kRefusal);
    assert_true(recall(11 * kSecond) == Recalled::kAskAgain);
    assert_true(recall(11 * kSecond + 1) == Recalled::kRefusal);

    /* another answer is as good as the first */
    t.remember(limit, 100 * kSecond, 12 * kSecond);
    assert_true(recall(17 * kSecond - 1) == Recalled::kRefusal);
    assert_true(recall(17 * kSecond) == Recalled::kAskAgain);

    /* what is over need not be checked */
    assert_true(recall(112 * kSecond) == Recalled::kNothing);
}

void to_ask_again_makes_it_no_younger(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);
    LimitState state;

    t.remember(limit, 10 * kSecond, kSecond);
    assert_true(t.table.recall(limit, 9 * kSecond, kSecond, &state)
                == Recalled::kAskAgain);

    assert_true(t.knows(limit, kSecond + 9990009));
    assert_false(t.knows(limit, kSecond + 9990010));
}

void where_no_age_is_young_enough_everybody_asks(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);
    LimitState state;

    t.remember(limit, 10 * kSecond, kSecond);

    for (int i = 0; i < 10; i++) {
        assert_true(t.table.recall(limit, 2 * kSecond, 0, &state)
                    == Recalled::kAskAgain);
    }
}

void any_age_is_young_enough_if_one_says_so(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);
    constexpr int64_t kDay = 86400 * kSecond;

    limit.window_us = 31 * kDay;
    t.remember(limit, 31 * kDay, kSecond);

    for (int64_t day = 0; day <= 30; day++) {
        assert_int_equal(t.wait(limit, kSecond + day * kDay),
                         (31 - day) * kDay);
    }
}

void no_wait_is_longer_than_the_window(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);

    limit.window_us = 10 * kSecond;
    t.remember(limit, int64_t{90} * 365 * 86400 * kSecond, kSecond);
    assert_int_equal(t.wait(limit, kSecond), 10 * kSecond);

    limit.buckets = 3;
    t.remember(limit, int64_t{90} * 365 * 86400 * kSecond, kSecond);
    assert_true(t.wait(limit, kSecond) >= 13 * kSecond);
    assert_true(t.wait(limit, kSecond) <= 14 * kSecond);
}

void if_the_clock_steps_back_a_refusal_lasts_no_longer(void **)
{
    constexpr int64_t kStart = int64_t{1000} * 86400 * kSecond;

    for (int64_t step :
         {int64_t{1}, kSecond, 60 * kSecond, int64_t{900} * 86400 * kSecond})
    {
        Table t;
        LimitQuery limit = limit_of("client", 5);
        LimitState state;
        int64_t now = kStart - step + 3 * kSecond;

        t.remember(limit, 10 * kSecond, kStart);
        assert_int_equal(t.wait(limit, kStart + 3 * kSecond), 7 * kSecond);
        assert_int_equal(t.wait(limit, now), 7 * kSecond);
        assert_int_equal(t.wait(limit, now + 5 * kSecond), 2 * kSecond);
        assert_false(t.knows(limit, now + 7 * kSecond));

        /* what is remembered after it lasts as long as ever */
        now += 7 * kSecond;
        t.remember(limit, 10 * kSecond, now);
        assert_int_equal(t.wait(limit, now + 4 * kSecond), 6 * kSecond);
        assert_true(
            t.table.recall(limit, now + 4 * kSecond, 5 * kSecond, &state)
            == Recalled::kRefusal);
        assert_true(
            t.table.recall(limit, now + 5 * kSecond, 5 * kSecond, &state)
            == Recalled::kAskAgain);
        assert_false(t.knows(limit, now + 10 * kSecond));
    }
}

void if_the_clock_steps_back_before_the_answer_nothing_is_remembered(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);

    t.table.remember(limit, LimitState{false, false, 5, 10 * kSecond},
                     3 * kSecond, 2 * kSecond);
    assert_false(t.knows(limit, 2 * kSecond));
}

void what_is_remembered_last_is_what_counts(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);

    t.remember(limit, 10 * kSecond, kSecond);
    t.remember(limit, 20 * kSecond, 2 * kSecond);
    assert_int_equal(t.wait(limit, 3 * kSecond), 19 * kSecond);

    t.remember(limit, 5 * kSecond, 4 * kSecond);
    assert_int_equal(t.wait(limit, 5 * kSecond), 4 * kSecond);
    assert_false(t.knows(limit, 9 * kSecond));

    /* in the same place */
    assert_int_equal(t.table.stats().keys, 1);
    assert_int_equal(t.table.stats().free_cells, t.table.stats().cells - 2);
}

void what_is_over_is_not_remembered(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);

    for (int64_t wait : {int64_t{0}, int64_t{1}, 2 * kSecond}) {
        t.table.remember(limit, LimitState{false, false, 5, wait}, kSecond,
                         3 * kSecond);
        assert_false(t.knows(limit, kSecond));
        assert_false(t.knows(limit, 3 * kSecond));
    }

    assert_int_equal(t.table.stats().keys, 0);
    assert_int_equal(t.table.stats().free_cells, t.table.stats().cells);

    t.table.remember(limit, LimitState{false, false, 5, 2 * kSecond + 3000},
                     kSecond, 3 * kSecond);
    assert_true(t.knows(limit, 3 * kSecond));
}

void what_is_forgotten_is_not_known_any_more(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);
    LimitQuery other = limit_of("other", 5);
    LimitState state;

    t.table.forget(limit);

    assert_true(t.ask(limit, kSecond, &state));
    t.remember(limit, 10 * kSecond, 2 * kSecond);
    t.remember(other, 10 * kSecond, 2 * kSecond);
    t.table.forget(limit);

    assert_false(t.knows(limit, 3 * kSecond));
    assert_true(t.knows(other, 3 * kSecond));
    assert_int_equal(t.table.stats().keys, 2);
    assert_int_equal(t.table.stats().free_cells, t.table.stats().cells - 4);

    assert_true(t.ask(limit, 4 * kSecond, &state));
    assert_int_equal(state.used, 2);

    t.remember(limit, 10 * kSecond, 5 * kSecond);
    assert_int_equal(t.wait(limit, 6 * kSecond), 9 * kSecond);
}

void a_refusal_takes_two_cells_and_gives_them_back(void **)
{
    Table t;
    uint64_t cells = t.table.stats().cells;

    assert_int_equal(t.table.stats().free_cells, cells);

    t.remember(limit_of("a", 5), 10 * kSecond, kSecond);
    assert_int_equal(t.table.stats().keys, 1);
    assert_int_equal(t.table.stats().free_cells, cells - 2);

    t.remember(limit_of("b", 5), 10 * kSecond, 2 * kSecond);
    assert_int_equal(t.table.stats().keys, 2);
    assert_int_equal(t.table.stats().free_cells, cells - 4);

    /* one that was asked for has another place in line */
    assert_true(t.knows(limit_of("b", 5), 3 * kSecond));

    t.remember(limit_of("c", 5), 10 * kSecond, 20 * kSecond);
    assert_int_equal(t.table.stats().keys, 1);
    assert_int_equal(t.table.stats().free_cells, cells - 2);
    assert_int_equal(t.table.stats().evictions, 0);
}

void refusals_that_are_over_never_fill_the_table(void **)
{
    Table t;

    for (int64_t i = 1; i <= 10000; i++) {
        LimitQuery limit = limit_of("client", i);

        /* a hundred are known at a time */
        t.remember(limit, kSecond, i * kSecond / 100);

        if (i % 3 == 0) {
            assert_true(t.knows(limit, i * kSecond / 100));
        }

        assert_true(t.table.stats().keys <= 150);
    }

    assert_int_equal(t.table.stats().evictions, 0);
}

void a_flood_of_refusals_spares_who_keeps_being_asked_about(void **)
{
    Table t;
    LimitState state;
    int64_t now = kSecond;
    int64_t counted = 0;

    t.remember(limit_of("refused", 5), 3000 * kSecond, now);

    for (int i = 0; i < 100000; i++) {
        std::string other = "other" + std::to_string(i);

        t.remember(limit_of(other, 5), 3000 * kSecond, ++now);

        /* some of them twice */
        if (i % 4 == 0) {
            assert_true(t.knows(limit_of(other, 5), ++now));
        }

        if (i % 100 == 0) {
            assert_true(t.ask(limit_of("client", 500), ++now, &state));
            counted += state.admits;
            assert_int_equal(state.used, counted);
            assert_true(t.knows(limit_of("refused", 5), ++now));
        }
    }

    assert_int_equal(counted, 500);
    assert_in_range(t.table.stats().evictions, 99000, 100000);
    assert_int_equal(t.table.stats().recoveries, 0);
}

void a_table_full_of_refusals_has_room_for_counts(void **)
{
    Table t;
    LimitState state;
    int64_t now = kSecond;

    for (int i = 0; i < 1000; i++) {
        LimitQuery limit = limit_of("refused", i + 1);

        t.remember(limit, 3000 * kSecond, ++now);
        assert_true(t.knows(limit, ++now));
    }

    for (int i = 1; i <= 1000; i++) {
        assert_true(t.ask(limit_of("client", 1000), ++now, &state));
        assert_int_equal(state.used, i);
    }
}

void where_counts_take_all_memory_something_is_given_up_as_a_whole(void **)
{
    Table t;
    LimitQuery greedy = limit_of("greedy", 1000000);
    LimitQuery refused = limit_of("client", 5);
    LimitState state;
    int64_t now = kSecond;
    int64_t counted = 0;

    while (t.ask(greedy, ++now, &state)) {
        counted++;
    }

    t.remember(refused, 10 * kSecond, ++now);

    /* the refusal, or the counts */
    bool is_known = t.knows(refused, ++now);

    greedy.cost = 0;
    assert_true(t.ask(greedy, ++now, &state));
    assert_int_equal(state.used, is_known ? 0 : counted);
    assert_int_equal(t.table.stats().evictions, is_known);
    assert_true(t.ask(limit_of("other", 5), ++now, &state));
    assert_true(state.admits);
}

void counts_survive_a_killed_process_among_refusals(void **)
{
    Table t;
    LimitState state;
    int64_t now = kSecond;
    std::string names[50];

    for (int i = 0; i < 50; i++) {
        names[i] = "client" + std::to_string(i);

        for (int k = 0; k < 3; k++) {
            assert_true(t.ask(limit_of(names[i], 3), ++now, &state));
            t.remember(limit_of(names[i], 3 + k), 1000 * kSecond, ++now);
        }
    }

    t.table.leave_half_done();

    /* they may have been forgotten; if not, they are true */
    for (const std::string &name : names) {
        LimitQuery limit = limit_of(name, 3);

        if (t.table.recall(limit, ++now, sl::kAnyAge, &state)
            == Recalled::kRefusal) {
            assert_int_equal(state.used, 5);
            assert_in_range(state.wait_us, 999 * kSecond, 1000 * kSecond);
        }
    }

    /* every cell is somewhere: each key has a block */
    sl::TableStats stats = t.table.stats();

    assert_int_equal(stats.recoveries, 1);
    assert_int_equal(stats.evictions, 0);
    assert_true(stats.keys >= 50);
    assert_int_equal(stats.free_cells + 2 * stats.keys, stats.cells);

    for (const std::string &name : names) {
        LimitQuery limit = limit_of(name, 3);

        assert_true(t.ask(limit, ++now, &state));
        assert_false(state.admits);
        assert_int_equal(state.used, 3);

        t.remember(limit, 10 * kSecond, now);
        assert_int_equal(t.wait(limit, now), 10 * kSecond);
    }
}

void whoever_remembers_or_forgets_puts_things_right_too(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);
    LimitState state;

    assert_true(t.ask(limit, kSecond, &state));

    t.table.leave_half_done();
    t.remember(limit, 10 * kSecond, 2 * kSecond);
    assert_int_equal(t.table.stats().recoveries, 1);
    assert_int_equal(t.wait(limit, 3 * kSecond), 9 * kSecond);

    t.table.leave_half_done();
    t.table.forget(limit);
    assert_int_equal(t.table.stats().recoveries, 2);
    assert_false(t.knows(limit, 4 * kSecond));

    assert_true(t.ask(limit, 5 * kSecond, &state));
    assert_int_equal(state.used, 2);
}

void counts_of_the_same_key_are_not_disturbed(void **)
{
    for (unsigned buckets : {0, 6}) {
        for (bool counts_refused : {false, true}) {
            Table plain;
            Table t;
            LimitQuery limit = limit_of("client", 5, buckets);
            LimitState expected;
            LimitState state;
            int64_t expected_time;
            int64_t time;

            limit.counts_refused = counts_refused;

            int64_t now = 0;

            /* an hour's window, a request in ten minutes or less */
            for (int64_t i = 1; i <= 200; i++) {
                now += (1 + i % 10) * 60 * kSecond;

                t.remember(limit, 60 * kSecond, now - 3, 1000);
                assert_true(t.knows(limit, now - 2));

                if (i % 3 == 0) {
                    t.table.forget(limit);
                }

                assert_true(plain.ask(limit, now, &expected, &expected_time));
                assert_true(t.ask(limit, now, &state, &time));

                assert_int_equal(time, expected_time);
                assert_int_equal(state.admits, expected.admits);
                assert_int_equal(state.is_counted, expected.is_counted);
                assert_int_equal(state.used, expected.used);
                assert_int_equal(state.wait_us, expected.wait_us);

                if (i % 7 == 0 && state.is_counted) {
                    plain.take_back(limit, expected, expected_time);
                    t.take_back(limit, state, time);
                }
            }
        }
    }
}

void counting_does_not_disturb_what_is_remembered(void **)
{
    Table t;
    LimitQuery limit = limit_of("client", 5);
    LimitState state;
    int64_t time;

    t.remember(limit, 1000 * kSecond, kSecond);

    for (int64_t i = 2; i < 100; i++) {
        assert_true(t.ask(limit, i * kSecond, &state, &time));
        assert_int_equal(t.wait(limit, i * kSecond), (1001 - i) * kSecond);

        if (i % 2) {
            t.take_back(limit, state, time);
        }
    }
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(
            soon_after_the_start_of_the_machine_buckets_count_as_ever),
        cmocka_unit_test(
            who_keeps_coming_is_not_driven_out_by_those_who_come_once),
        cmocka_unit_test(
            those_whose_window_has_passed_go_first_and_are_no_loss),
        cmocka_unit_test(a_client_that_takes_all_memory_has_no_answer),
        cmocka_unit_test(what_is_taken_back_counts_no_more_wherever_it_stands),
        cmocka_unit_test(what_has_left_the_window_cannot_be_taken_back),
        cmocka_unit_test(
            who_was_forgotten_and_comes_again_is_taken_nothing_back_from),
        cmocka_unit_test(a_place_that_never_was_is_not_looked_at),
        cmocka_unit_test(one_request_is_taken_back_from_each_limit_by_itself),
        cmocka_unit_test(what_was_taken_back_takes_no_memory),
        cmocka_unit_test(
            who_is_killed_at_any_moment_leaves_a_table_that_counts),
        cmocka_unit_test(taking_back_looks_at_few_cells_however_many_there_are),
        cmocka_unit_test(
            very_many_that_leave_at_once_are_dropped_in_several_calls),
        cmocka_unit_test(a_max_that_falls_makes_no_work_that_others_wait_for),
        cmocka_unit_test(to_make_room_is_no_walk_through_the_memory),
        cmocka_unit_test(
            if_the_clock_steps_back_nobody_waits_longer_than_a_window),
        cmocka_unit_test(a_clock_that_keeps_stepping_back_does_not_stop_time),
        cmocka_unit_test(nothing_is_known_at_first),
        cmocka_unit_test(a_refusal_is_known_until_the_moment_that_was_named),
        cmocka_unit_test(what_is_used_is_what_was_used_then),
        cmocka_unit_test(a_refusal_is_known_of_the_very_same_request_only),
        cmocka_unit_test(refusals_of_several_requests_are_known_each),
        cmocka_unit_test(
            a_wait_is_counted_from_the_question_not_from_the_answer),
        cmocka_unit_test(a_clock_may_run_faster_by_a_thousandth),
        cmocka_unit_test(after_a_while_one_has_to_ask_again),
        cmocka_unit_test(to_ask_again_makes_it_no_younger),
        cmocka_unit_test(where_no_age_is_young_enough_everybody_asks),
        cmocka_unit_test(any_age_is_young_enough_if_one_says_so),
        cmocka_unit_test(no_wait_is_longer_than_the_window),
        cmocka_unit_test(if_the_clock_steps_back_a_refusal_lasts_no_longer),
        cmocka_unit_test(
            if_the_clock_steps_back_before_the_answer_nothing_is_remembered),
        cmocka_unit_test(what_is_remembered_last_is_what_counts),
        cmocka_unit_test(what_is_over_is_not_remembered),
        cmocka_unit_test(what_is_forgotten_is_not_known_any_more),
        cmocka_unit_test(a_refusal_takes_two_cells_and_gives_them_back),
        cmocka_unit_test(refusals_that_are_over_never_fill_the_table),
        cmocka_unit_test(
            a_flood_of_refusals_spares_who_keeps_being_asked_about),
        cmocka_unit_test(a_table_full_of_refusals_has_room_for_counts),
        cmocka_unit_test(
            where_counts_take_all_memory_something_is_given_up_as_a_whole),
        cmocka_unit_test(counts_survive_a_killed_process_among_refusals),
        cmocka_unit_test(whoever_remembers_or_forgets_puts_things_right_too),
        cmocka_unit_test(counts_of_the_same_key_are_not_disturbed),
        cmocka_unit_test(counting_does_not_disturb_what_is_remembered),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
