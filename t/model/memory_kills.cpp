/*
 * memory_kills: a process that changes the embedded store's table is killed
 * between any two of its instructions. Prints TAP.
 *
 * In every scene a child does one thing to a table in shared memory, and is led
 * through it instruction by instruction (ptrace). Each time something in the
 * memory has changed, the next process is played on a copy: it must find every
 * client's count, and what operators have ruled about it, as it was before or
 * as it will be, and a table in which all is in its place. As a rebuild can be
 * killed, too, some tables that were left half done are rebuilt by such a
 * child.
 */

#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "../fuzz/table_walk.h"
#include "sl_judge.h"
#include "store/pure/sl_memory_rulings.h"
#include "store/pure/sl_memory_table.h"

namespace {

using namespace sl_model;
using sl::LimitQuery;
using sl::LimitState;
using sl::MemoryTable;

constexpr int64_t kSecond = 1000000;
constexpr int64_t kHour = 3600 * kSecond;

/* Smaller than any table in use: a step takes long, and a rebuild takes a walk
 * over all cells. */
constexpr size_t kTableSize = 10 * 1024;

/* Memory that a child shares with its parent. */
class SharedBytes {
  public:
    explicit SharedBytes(size_t size)
        : size_(size), bytes_(static_cast<uint8_t *>(
                           mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0)))
    {
        check(bytes_ != MAP_FAILED);
    }

    ~SharedBytes() { munmap(bytes_, size_); }

    SharedBytes(const SharedBytes &) = delete;
    SharedBytes &operator=(const SharedBytes &) = delete;

    size_t size() const { return size_; }
    uint8_t *get() const { return bytes_; }

    void copy(const SharedBytes &other) { copy(other.bytes_); }
    void copy(const uint8_t *bytes) { memcpy(bytes_, bytes, size_); }

    bool is_like(const SharedBytes &other) const
    {
        return memcmp(bytes_, other.bytes_, size_) == 0;
    }

    MemoryTable table() const { return {bytes_, size_}; }
    sl::Cells cells() const { return {bytes_, size_}; }

  private:
    size_t size_;
    uint8_t *bytes_;
};

/* What the child does. */
using Deed = std::function<void(MemoryTable)>;

/*
 * Lets a child do this, and calls `changed` whenever something in the memory
 * has. False if it did not come to its end.
 */
bool step_through(const SharedBytes &memory, const Deed &deed,
                  const std::function<void()> &changed)
{
    SharedBytes last(memory.size());
    int status;

    last.copy(memory);
    fflush(stdout);

    pid_t child = fork();

    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
        raise(SIGSTOP);
        deed(memory.table());
        raise(SIGSTOP);
    }

    bool is_there = waitpid(child, &status, 0) == child && WIFSTOPPED(status);

    ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_EXITKILL);

    while (is_there) {
        if (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0
            || waitpid(child, &status, 0) != child)
        {
            return false;
        }

        if (!memory.is_like(last)) {
            last.copy(memory);
            changed();
        }

        is_there = WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP;
    }

    bool is_done = WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP;

    kill(child, SIGKILL);
    waitpid(child, &status, 0);

    return is_done;
}

/* Empty if children can be led; else why not. */
std::string why_not_led()
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        _exit(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 ? 0 : errno);
    }

    waitpid(child, &status, 0);

    return WEXITSTATUS(status) == 0
               ? ""
               : text("ptrace: %s", strerror(WEXITSTATUS(status)));
}

LimitQuery limit_of(std::string_view key, int64_t cost = 1,
                    unsigned buckets = 0, int64_t max = 10000)
{
    return {"zone",  key,
            kHour,   max,
            cost,    buckets ? sl::Algorithm::kBuckets : sl::Algorithm::kLog,
            buckets, false,
            false,   false};
}

LimitQuery counting_refused(LimitQuery limit)
{
    limit.counts_refused = true;
    return limit;
}

/* A request that was counted. */
struct Request {
    std::vector<LimitQuery> limits; /* with places */
    int64_t time;
};

/* A table with clients whose counts are known. */
class Stage {
  public:
    explicit Stage(size_t size) : memory_(size)
    {
        const uint8_t secret[MemoryTable::kSecretSize] = {};

        MemoryTable::format(memory_.get(), size, secret);
    }

    SharedBytes &memory() { return memory_; }
    int64_t now() const { return now_; }
    void pass(int64_t time) { now_ += time; }

    /* The child's deed is about such clients; others are to be left alone. */
    void in_question(const std::vector<LimitQuery> &limits)
    {
        for (const LimitQuery &limit : limits) {
            watch(limit, true);
        }
    }

    Request count(std::vector<LimitQuery> limits, int64_t pause = kSecond)
    {
        LimitState states[sl::kMaxLimits];
        int64_t time;

        now_ += pause;
        check(memory_.table().ask(limits.data(), limits.size(), now_, states,
                                  &time)
              == sl::Decided::kYes);

        for (size_t i = 0; i < limits.size(); i++) {
            watch(limits[i], false);
            limits[i].place = states[i].place;
        }

        return {limits, time};
    }

    std::vector<Request> count(int times, const LimitQuery &limit,
                               int64_t pause = kSecond)
    {
        std::vector<Request> requests;

        for (int i = 0; i < times; i++) {
            requests.push_back(count({limit}, pause));
        }

        return requests;
    }

    void take_back(const Request &request)
    {
        memory_.table().settle(request.limits.data(), request.limits.size(),
                               request.time, now_);
    }

    void remember(const LimitQuery &limit)
    {
        memory_.table().remember(limit, {false, false, 5, 100 * kSecond}, now_,
                                 now_);
    }

    void intervene(const LimitQuery &client,
                   const sl::Intervention &intervention)
    {
        sl::Standing standing;

        check(memory_.table().intervene(client, intervention, now_, &standing)
              == sl::Decided::kYes);
    }

    /* A text that stays. */
    std::string_view name(const std::string &text)
    {
        return names_.emplace_back(text);
    }

    struct Client {
        LimitQuery look;
        bool is_in_question;
    };

    const std::vector<Client> &clients() const { return clients_; }

  private:
    SharedBytes memory_;
    int64_t now_ = 1000 * kHour;
    std::vector<Client> clients_;
    std::deque<std::string> names_;

    void watch(LimitQuery limit, bool is_in_question)
    {
        for (const Client &client : clients_) {
            if (client.look.zone == limit.zone && client.look.key == limit.key)
            {
                return;
            }
        }

        limit.cost = 0;
        clients_.push_back({limit, is_in_question});
    }
};

/* Who else is in the table. */
enum Crowd { kSome, kFull, kCrowds };

/* They have a day, so that they stay whatever happens to others. */
LimitQuery all_day(LimitQuery limit)
{
    limit.zone = "crowd";
    limit.window_us = 24 * kHour;
    return limit;
}

void come_some(Stage *stage)
{
    stage->count(30, all_day(limit_of("ones")));
    stage->count(10, all_day(limit_of("weighted", 3)));
    stage->count(5, all_day(limit_of("mixed")));
    stage->count(5, all_day(limit_of("mixed", 2)));
    stage->count(5, all_day(limit_of("mixed")));
    stage->count(10, all_day(limit_of("buckets", 1, 100)), 600 * kSecond);
    stage->count(30, counting_refused(all_day(limit_of("denied", 1, 0, 9))));
    stage->remember(all_day(limit_of("refused")));

    std::vector<Request> taken = stage->count(20, all_day(limit_of("taken")));

    for (size_t i = 3; i < taken.size(); i += 2) {
        stage->take_back(taken[i]);
    }

    for (int i = 0; i < 10; i++) {
        stage->count(
            {all_day(limit_of(stage->name("once" + std::to_string(i))))});
    }

    stage->intervene(all_day(limit_of("ones")), {sl::Act::kBan, 99 * kHour});
    stage->intervene(all_day(limit_of("mixed")),
                     {sl::Act::kOverride, 88 * kHour, 77});
}

/* So many that somebody has to leave for the next one. */
void fill(Stage *stage)
{
    MemoryTable table = stage->memory().table();

    for (int i = 0; table.stats().free_cells > 1; i++) {
        std::string_view name = stage->name("more" + std::to_string(i));
        bool is_nearly_full = table.stats().free_cells < 20;

        stage->count(is_nearly_full ? 1 : 7 * (i % 16), all_day(limit_of(name)),
                     1000);
    }

    check(table.stats().evictions == 0);
}

struct Scene {
    const char *title;

    /* What the first client in question has used, before and after. */
    int64_t before;
    int64_t after;

    /* What happened until now; returns what the child does. */
    std::function<Deed(Stage *)> play;

    /* A refused request is counted before the oldest units go one by one: any
     * number of them may still count, and so much more. */
    int64_t again = 0;

    /* Nobody else has room. */
    bool is_alone = false;

    size_t size = kTableSize;
};

Deed ask(const Stage &stage, std::vector<LimitQuery> limits, int64_t later = 0)
{
    int64_t clock = stage.now() + later;

    return [limits, clock](MemoryTable table) {
        LimitState states[sl::kMaxLimits];
        int64_t time;

        table.ask(limits.data(), limits.size(), clock, states, &time);
    };
}

Deed take_back(const Request &request)
{
    return [request](MemoryTable table) {
        table.settle(request.limits.data(), request.limits.size(), request.time,
                     request.time);
    };
}

/* Every limit of the request has cost so much after all. */
Deed settle(const Stage &stage, Request request, int64_t true_cost)
{
    int64_t clock = stage.now() + kSecond;

    for (LimitQuery &limit : request.limits) {
        limit.true_cost = true_cost;
    }

    return [request, clock](MemoryTable table) {
        table.settle(request.limits.data(), request.limits.size(), request.time,
                     clock);
    };
}

/* Something that changes nothing but what a killed process has left. */
void come_next(MemoryTable table)
{
    table.forget(limit_of("nobody"));
}

/* `counted` requests were counted; the child counts one more. */
Scene count_scene(const char *title, int counted, LimitQuery limit,
                  LimitQuery next, int64_t pause = kSecond)
{
    return {title, counted * limit.cost, counted * limit.cost + next.cost,
            [=](Stage *stage) {
                stage->in_question({limit});
                stage->count(counted, limit, pause);
                stage->pass(pause);

                return ask(*stage, {next});
            }};
}

/* Of `counted` requests those from `first` to `last` are taken back, the last
 * one of them by the child. */
Scene take_back_scene(const char *title, int counted, LimitQuery limit,
                      size_t first, size_t last, int64_t pause = kSecond)
{
    int64_t before =
        (counted - static_cast<int64_t>(last - first)) * limit.cost;

    return {title, before, before - limit.cost, [=](Stage *stage) {
                stage->in_question({limit});

                std::vector<Request> requests =
                    stage->count(counted, limit, pause);

                for (size_t i = first; i < last; i++) {
                    stage->take_back(requests[i]);
                }

                return take_back(requests[last]);
            }};
}

/* Of `counted` requests one turns out to have cost something else. */
Scene settle_scene(const char *title, int counted, LimitQuery limit,
                   size_t which, int64_t true_cost, int64_t pause = kSecond)
{
    int64_t before = counted * limit.cost;

    return {title, before, before - limit.cost + true_cost, [=](Stage *stage) {
                stage->in_question({limit});

                std::vector<Request> requests =
                    stage->count(counted, limit, pause);

                return settle(*stage, requests[which], true_cost);
            }};
}

/* Of `counted` requests so many have expired when the child comes. */
Scene expiry_scene(const char *title, int counted, int expired,
                   LimitQuery limit, LimitQuery next)
{
    int64_t before = (counted - expired) * limit.cost;

    return {title, before, before + next.cost, [=](Stage *stage) {
                stage->in_question({limit});
                stage->count(counted, limit);
                stage->pass(kHour - (counted - expired) * kSecond);

                return ask(*stage, {next});
            }};
}

/* So many requests were refused, and the child's will be. */
Scene refused_scene(const char *title, int refused, int64_t max,
                    int64_t cost = 1)
{
    LimitQuery limit = counting_refused(limit_of("one", cost, 0, max));

    return {title, refused == 0 ? max / cost * cost : max, max,
            [=](Stage *stage) {
                stage->in_question({limit});
                stage->count(static_cast<int>(max / cost) + refused, limit);
                stage->pass(kSecond);

                return ask(*stage, {limit});
            },
            cost};
}

std::vector<LimitQuery> of_all_kinds()
{
    LimitQuery refused = counting_refused(limit_of("one", 1, 0, 4));

    refused.zone = "refused";
    refused.dry_run = true;

    return {limit_of("one"), limit_of("weighted", 3), limit_of("buckets", 2, 6),
            refused};
}

std::vector<Scene> counting()
{
    LimitQuery one = limit_of("one");
    LimitQuery five = limit_of("one", 5);
    LimitQuery bucket = limit_of("one", 1, 6);
    LimitQuery heavy_bucket = limit_of("one", 5, 6);

    return {
        count_scene("the first request of a client", 0, one, one),
        count_scene("a request", 3, one, one),
        count_scene("a request at the same time as the last one", 3, one, one,
                    0),
        count_scene("a request for which a block is added", 7, one, one),
        count_scene("a request behind many", 30, one, one),
        count_scene("the first request, with a cost", 0, five, five),
        count_scene("a request with a cost", 2, five, five),
        count_scene("a request with a cost for which a block is added", 3, five,
                    five),
        count_scene("a request with a cost behind ones", 10, one, five),
        count_scene("a request behind such with a cost", 4, five, one),
        count_scene("the first bucket", 0, bucket, bucket),
        count_scene("a request in a bucket", 2, bucket, bucket),
        count_scene("a request with a cost in a bucket", 2, heavy_bucket,
                    heavy_bucket),
        count_scene("another bucket", 2, bucket, bucket, 601 * kSecond),
        count_scene("a bucket for which a block is added", 3, bucket, bucket,
                    601 * kSecond),
        {"a request with limits of all kinds", 3, 4,
         [](Stage *stage) {
             stage->in_question(of_all_kinds());

             for (int i = 0; i < 3; i++) {
                 stage->count(of_all_kinds());
             }

             stage->pass(kSecond);
             return ask(*stage, of_all_kinds());
         }},
        {"the first request with limits of all kinds", 0, 1,
         [](Stage *stage) {
             stage->in_question(of_all_kinds());
             return ask(*stage, of_all_kinds());
         }},
        {"a look", 10, 10,
         [=](Stage *stage) {
             stage->in_question({one});
             stage->count(10, one);
             return ask(*stage, {limit_of("one", 0)});
         }},
        {"the clock steps back", 10, 11,
         [=](Stage *stage) {
             stage->in_question({one});
             stage->count(10, one);
             return ask(*stage, {one}, -1000 * kSecond);
         }},
        {"the clock steps back once more, and goes on", 10, 11,
         [=](Stage *stage) {
             stage->in_question({one});
             stage->count(9, one);
             stage->pass(-2000 * kSecond);
             stage->count(1, one);
             return ask(*stage, {one}, 5 * kSecond);
         }},
    };
}

std::vector<Scene> refusing()
{
    std::vector<Scene> scenes = {
        refused_scene("the first one that is refused", 0, 5),
        refused_scene("more that are refused", 3, 5),
        refused_scene("with a cost, the first one that is refused", 0, 12, 5),
        refused_scene("with a cost, more that are refused", 2, 12, 5),
        {"many are forgotten because max is smaller now", 30, 5,
         [](Stage *stage) {
             LimitQuery limit = counting_refused(limit_of("one", 1, 0, 30));

             stage->in_question({limit});
             stage->count(70, limit);
             limit.max = 5;
             return ask(*stage, {limit}, kSecond);
         },
         1},
        {"a bucket in which a refused one counts", 8, 9,
         [](Stage *stage) {
             LimitQuery limit = counting_refused(limit_of("one", 1, 6, 5));

             stage->in_question({limit});
             stage->count(8, limit);
             return ask(*stage, {limit}, kSecond);
         }},
    };

    /* wherever in a block the oldest one stands that is forgotten */
    for (int refused = 5; refused < 5 + 7; refused++) {
        scenes.push_back(refused_scene("one is forgotten for each that is "
                                       "refused",
                                       refused, 5));
        scenes.push_back(refused_scene("with a cost, one is forgotten for each "
                                       "that is refused",
                                       refused, 12, 5));
    }

    return scenes;
}

std::vector<Scene> taking_back()
{
    LimitQuery one = limit_of("one");
    LimitQuery five = limit_of("one", 5);
    LimitQuery bucket = limit_of("one", 1, 6);

    return {
        take_back_scene("the only one is taken back", 1, one, 0, 0),
        take_back_scene("the first one is taken back", 5, one, 0, 0),
        take_back_scene("one between others is taken back", 5, one, 2, 2),
        take_back_scene("the last one is taken back", 5, one, 4, 4),
        take_back_scene("the first block is taken back", 30, one, 0, 6),
        take_back_scene("one of a block between others is taken back", 30, one,
                        9, 9),
        take_back_scene("a block between others is taken back", 30, one, 7, 13),
        take_back_scene("the last block is taken back", 30, one, 28, 29),
        take_back_scene("all are taken back", 30, one, 0, 29),
        take_back_scene("the only one with a cost is taken back", 1, five, 0,
                        0),
        take_back_scene("the first one with a cost is taken back", 8, five, 0,
                        0),
        take_back_scene("the first block with costs is taken back", 8, five, 0,
                        2),
        take_back_scene("a block with costs is taken back", 8, five, 3, 5),
        take_back_scene("the last block with costs is taken back", 8, five, 6,
                        7),
        take_back_scene("one of a bucket is taken back", 3, bucket, 1, 1),
        take_back_scene("a bucket is taken back", 3, bucket, 0, 2),
        take_back_scene("the first bucket is taken back", 5, bucket, 0, 0,
                        601 * kSecond),
        take_back_scene("a block of buckets is taken back", 5, bucket, 3, 4,
                        601 * kSecond),
        {"the block with a cost behind ones is taken back", 8, 3,
         [=](Stage *stage) {
             stage->in_question({one});
             stage->count(3, one);
             return take_back(stage->count({five}));
         }},
        {"the block with a cost between ones is taken back", 11, 6,
         [=](Stage *stage) {
             stage->in_question({one});
             stage->count(3, one);
             Request request = stage->count({five});
             stage->count(3, one);
             return take_back(request);
         }},
        {"the first block is taken back when some of it has expired", 25, 24,
         [=](Stage *stage) {
             stage->in_question({one});

             std::vector<Request> requests = stage->count(30, one);

             stage->pass(kHour - 27 * kSecond);
             stage->count({one});

             for (size_t i = 3; i < 6; i++) {
                 stage->take_back(requests[i]);
             }

             stage->pass(-kSecond);
             return take_back(requests[6]);
         }},
        {"a request with limits of all kinds is taken back", 3, 2,
         [](Stage *stage) {
             stage->in_question(of_all_kinds());
             stage->count(of_all_kinds());
             Request request = stage->count(of_all_kinds());
             stage->count(of_all_kinds());
             return take_back(request);
         }},
    };
}

std::vector<Scene> settling()
{
    LimitQuery one = limit_of("one");
    LimitQuery five = limit_of("one", 5);
    LimitQuery bucket = limit_of("one", 5, 6);

    return {
        settle_scene("the only one has cost less", 1, five, 0, 2),
        settle_scene("the first one has cost less", 8, five, 0, 4),
        settle_scene("one between others has cost less", 8, five, 4, 1),
        settle_scene("the last one has cost less", 8, five, 7, 3),
        settle_scene("one of a bucket has cost less", 3, bucket, 1, 2),
        settle_scene("one of an older bucket has cost less", 5, bucket, 1, 2,
                     601 * kSecond),
        settle_scene("one has cost what was thought", 8, five, 4, 5),
        settle_scene("the only one has cost more", 1, one, 0, 7),
        settle_scene("one has cost 1 more", 3, five, 0, 6),
        settle_scene("one has cost more, behind such with a cost", 2, five, 0,
                     9),
        settle_scene("one has cost more, and a block is added", 3, five, 0, 9),
        settle_scene("one has cost more, behind ones", 10, one, 3, 8),
        settle_scene("one has cost more than is allowed", 10, one, 3, 1000000),
        settle_scene("one has cost more in a bucket", 3, bucket, 1, 8),
        settle_scene("one has cost more in another bucket", 3, bucket, 1, 8,
                     601 * kSecond),
        {"one has cost more, and all has expired", 0, 4,
         [=](Stage *stage) {
             stage->in_question({five});

             Request request = stage->count(8, five)[0];

             stage->pass(2 * kHour);
             return settle(*stage, request, 9);
         }},
        {"one has cost more, and some have expired", 25, 29,
         [=](Stage *stage) {
             stage->in_question({five});

             Request request = stage->count(8, five, 10 * kSecond)[0];

             stage->pass(kHour - 45 * kSecond);
             return settle(*stage, request, 9);
         }},
        {"one has cost more, and nobody knows its client any more", 0, 4,
         [=](Stage *stage) {
             stage->in_question({five});

             Request request = stage->count({five});

             stage->intervene(five, {sl::Act::kForget});
             return settle(*stage, request, 9);
         }},
        {"limits of all kinds have cost less or more", 3, 4,
         [](Stage *stage) {
             stage->in_question(of_all_kinds());
             stage->count(of_all_kinds());
             Request request = stage->count(of_all_kinds());
             stage->count(of_all_kinds());
             return settle(*stage, request, 2);
         }},
    };
}

std::vector<Scene> expiring()
{
    LimitQuery one = limit_of("one");
    LimitQuery five = limit_of("one", 5);
    LimitQuery look = limit_of("one", 0);

    return {
        expiry_scene("some of a block have expired", 5, 2, one, one),
        expiry_scene("all but the last of a block have expired", 14, 6, one,
                     one),
        expiry_scene("a block has expired", 14, 7, one, one),
        expiry_scene("blocks have expired, and some of the next", 30, 16, one,
                     one),
        expiry_scene("all have expired", 30, 30, one, one),
        expiry_scene("some with costs have expired", 8, 1, five, five),
        expiry_scene("blocks with costs have expired", 8, 7, five, one),
        expiry_scene("all with costs have expired", 8, 8, five, five),
        expiry_scene("a look, when some have expired", 30, 16, one, look),
        expiry_scene("a look, when all have expired", 30, 30, one, look),
        {"blocks of both kinds have expired", 1, 2,
         [=](Stage *stage) {
             stage->in_question({one});
             stage->count(3, one);
             stage->count(1, five);
             stage->count(6, one);
             stage->pass(kHour - kSecond);
             return ask(*stage, {one});
         }},
        {"buckets have expired", 2, 3,
         [](Stage *stage) {
             LimitQuery bucket = limit_of("one", 1, 6);

             stage->in_question({bucket});
             stage->count(6, bucket, 600 * kSecond);
             stage->pass(3000 * kSecond);
             return ask(*stage, {bucket});
         }},
        {"clients whose windows have passed are removed", 0, 1,
         [=](Stage *stage) {
             stage->in_question({limit_of("new"), one, limit_of("regular")});
             stage->count(30, limit_of("regular"));
             stage->count({one});
             stage->pass(kHour);
             return ask(*stage, {limit_of("new")});
         }},
        {"more has expired than is dropped at a time", 5, 5,
         [=](Stage *stage) {
             stage->in_question({one});
             stage->count(7 * 600, one, 1);
             stage->pass(kHour);
             /* of another limit of the same zone, with a longer window */
             LimitQuery longer = one;
             longer.window_us = 3 * kHour;
             stage->count(5, longer);
             return ask(*stage, {one});
         },
         0, true, 64 * 1024},
        {"there is no room", 876, 876,
         [=](Stage *stage) {
             stage->in_question({one});

             while (stage->memory().table().stats().free_cells > 1) {
                 stage->count({one});
             }

             return ask(*stage, {one});
         },
         0, true},
    };
}

std::vector<Scene> remembering()
{
    LimitQuery one = limit_of("one");
    auto remember = [one](const Stage &stage) -> Deed {
        int64_t now = stage.now() + kSecond;

        return [one, now](MemoryTable table) {
            table.remember(one, {false, false, 5, 200 * kSecond}, now, now);
        };
    };
    auto recall = [one](const Stage &stage, int64_t max_age) -> Deed {
        int64_t now = stage.now() + kSecond;

        return [one, now, max_age](MemoryTable table) {
            LimitState state;

            table.recall(one, now, max_age, &state);
        };
    };
    auto begin = [one](Stage *stage) {
        stage->in_question({one});
        stage->count(10, one);
    };

    return {
        {"a refusal is remembered", 10, 10,
         [=](Stage *stage) {
             begin(stage);
             return remember(*stage);
         }},
        {"a refusal is remembered again", 10, 10,
         [=](Stage *stage) {
             begin(stage);
             stage->remember(one);
             return remember(*stage);
         }},
        {"a refusal is recalled", 10, 10,
         [=](Stage *stage) {
             begin(stage);
             stage->remember(one);
             return recall(*stage, sl::kAnyAge);
         }},
        {"a refusal is recalled, and the store asked again", 10, 10,
         [=](Stage *stage) {
             begin(stage);
             stage->remember(one);
             return recall(*stage, 1);
         }},
        {"a refusal is forgotten", 10, 10,
         [=](Stage *stage) {
             begin(stage);
             stage->remember(one);
             return [one](MemoryTable table) {
                 table.forget(one);
             };
         }},
    };
}

Deed intervene(const Stage &stage, const LimitQuery &client,
               const sl::Intervention &intervention, int64_t later = kSecond)
{
    int64_t clock = stage.now() + later;

    return [client, intervention, clock](MemoryTable table) {
        sl::Standing standing;

        table.intervene(client, intervention, clock, &standing);
    };
}

std::vector<Scene> ruling()
{
    LimitQuery one = limit_of("one");
    LimitQuery two = limit_of("two");
    LimitQuery three = limit_of("three");
    sl::Intervention ban{sl::Act::kBan, 3 * kHour};
    sl::Intervention raise{sl::Act::kOverride, 4 * kHour, 500};
    sl::Intervention forget{sl::Act::kForget};

    /* Of a client that was counted and ruled about so. */
    auto scene = [=](const char *title,
                     const std::vector<sl::Intervention> &past,
                     sl::Intervention next) {
        int64_t after = next.act == sl::Act::kForget ? 0 : 10;

        return Scene{title, 10, after, [=](Stage *stage) {
                         stage->in_question({one});
                         stage->count(10, one);

                         for (const sl::Intervention &done : past) {
                             stage->intervene(one, done);
                         }

                         return intervene(*stage, one, next);
                     }};
    };

    return {
        scene("a ban", {}, ban),
        scene("a longer ban", {ban}, {sl::Act::kBan, 9 * kHour}),
        scene("a shorter ban", {ban}, {sl::Act::kBan, kHour}),
        scene("a ban is lifted", {ban}, {sl::Act::kBan}),
        scene("another max", {}, raise),
        scene("another max in the place of one", {raise},
              {sl::Act::kOverride, 2 * kHour, 3}),
        scene("another max is lifted", {raise}, {sl::Act::kOverride}),
        scene("another max besides a ban", {ban}, raise),
        scene("a ban is lifted, and another max stays", {raise, ban},
              {sl::Act::kBan}),
        scene("a client is forgotten", {}, forget),
        scene("a client is forgotten, and its ban", {raise, ban}, forget),
        scene("an operator looks", {ban}, {sl::Act::kLook}),
        {"a client is forgotten with what was refused", 5, 0,
         [=](Stage *stage) {
             LimitQuery limit = counting_refused(limit_of("one", 1, 0, 5));

             stage->in_question({limit});
             stage->count(20, limit);
             return intervene(*stage, limit, forget);
         },
         1},
        {"a client is forgotten with its buckets", 10, 0,
         [=](Stage *stage) {
             LimitQuery limit = limit_of("one", 1, 6);

             stage->in_question({limit});
             stage->count(10, limit);
             stage->intervene(limit, ban);
             return intervene(*stage, limit, forget);
         }},
        {"a ruling in the place of one that has ended", 10, 10,
         [=](Stage *stage) {
             stage->in_question({three, one, two});
             stage->count(10, three);

             /* as many as there is room for */
             for (uint32_t n = stage->memory().cells().header().rulings.last;
                  n < stage->memory().table().most_rulings(); n++)
             {
                 stage->intervene(
                     limit_of(stage->name("ended" + std::to_string(n))),
                     {sl::Act::kBan, kSecond});
             }

             return intervene(*stage, three, raise, 2 * kSecond);
         }},
        {"the first ruling since all have ended", 10, 10,
         [=](Stage *stage) {
             stage->in_question({one, two, three});
             stage->count(10, one);
             stage->intervene(two, {sl::Act::kBan, kSecond});
             stage->intervene(three, {sl::Act::kOverride, kSecond, 7});
             return intervene(*stage, one, raise, 2 * kSecond);
         },
         0, true},
        {"a request of a client that is banned", 10, 10,
         [=](Stage *stage) {
             stage->in_question({one});
             stage->count(10, one);
             stage->intervene(one, ban);
             return ask(*stage, {one}, kSecond);
         }},
        {"a request of a client that has another max", 10, 11,
         [=](Stage *stage) {
             LimitQuery limit = limit_of("one", 1, 0, 10);

             stage->in_question({limit});
             stage->count(10, limit);
             stage->intervene(limit, raise);
             return ask(*stage, {limit}, kSecond);
         }},
    };
}

/* One scene with one crowd. */
class Play {
  public:
    Play(const Scene &scene, Crowd crowd)
        : scene_(scene), stage_(scene.size), crowd_(crowd), copy_(scene.size),
          before_(scene.size)
    {}

    /* Empty, or what was wrong. `nth`: which of the tables that were left is
     * rebuilt by a child; kNone: none. */
    static constexpr size_t kNone = SIZE_MAX;

    std::string run(size_t nth)
    {
        if (!scene_.is_alone) {
            come_some(&stage_);
        }

        Deed deed = scene_.play(&stage_);

        if (crowd_ == kFull) {
            int64_t now = stage_.now();

            fill(&stage_);
            stage_.pass(now - stage_.now());
        }

        set_expectations(deed);
        step(deed, true);

        if (wrong_.empty() && !stage_.memory().is_like(copy_of_after())) {
            wrong_ = "the child did something else";
        }

        if (wrong_.empty() && nth != kNone) {
            stage_.memory().copy(left_[nth % left_.size()].data());
            step(come_next, false);
        }

        return wrong_;
    }

    uint64_t states() const { return states_; }
    uint64_t half_done() const { return half_done_; }
    uint64_t evictions() const { return evictions_; }

  private:
    static constexpr int64_t kMoments[] = {0, 1800 * kSecond};

    const Scene &scene_;
    Stage stage_;
    Crowd crowd_;
    SharedBytes copy_;
    SharedBytes before_;
    std::vector<uint8_t> after_;

    /* What each client has used, at each of the moments. */
    std::vector<int64_t> old_;
    std::vector<int64_t> new_;
    std::vector<int64_t> found_;

    /* What is ruled about each, and is in force. */
    std::vector<sl::Ruling> old_rulings_;
    std::vector<sl::Ruling> new_rulings_;
    std::vector<sl::Ruling> found_rulings_;

    std::vector<std::vector<uint8_t>> left_;
    uint64_t states_ = 0;
    uint64_t half_done_ = 0;
    uint64_t evictions_ = 0;
    std::string wrong_;

    const SharedBytes &copy_of_after()
    {
        copy_.copy(after_.data());
        return copy_;
    }

    void look(std::vector<int64_t> *used)
    {
        used->clear();

        for (int64_t later : kMoments) {
            for (const Stage::Client &client : stage_.clients()) {
                LimitState state;
                int64_t time;
                sl::Decided decided = sl::Decided::kNotYet;

                while (decided == sl::Decided::kNotYet) {
                    decided = copy_.table().ask(
                        &client.look, 1, stage_.now() + later, &state, &time);
                }

                used->push_back(state.used);
            }
        }
    }

    void look(std::vector<sl::Ruling> *rulings)
    {
        sl::Rulings area(copy_.cells());

        rulings->clear();

        for (const Stage::Client &client : stage_.clients()) {
            const sl::Ruling *found = area.find(area.name_of(client.look));
            sl::Ruling ruling;

            if (found != nullptr && found->bans(stage_.now())) {
                ruling.ban_until_us = found->ban_until_us;
            }

            if (found != nullptr && found->overrides(stage_.now())) {
                ruling.max = found->max;
                ruling.max_until_us = found->max_until_us;
            }

            rulings->push_back(ruling);
        }
    }

    void set_expectations(const Deed &deed)
    {
        before_.copy(stage_.memory());
        copy_.copy(before_);
        look(&old_rulings_);
        look(&old_);

        copy_.copy(before_);
        deed(copy_.table());
        after_.assign(copy_.get(), copy_.get() + copy_.size());
        evictions_ =
            copy_.table().stats().evictions - before_.table().stats().evictions;
        look(&new_rulings_);
        look(&new_);

        expect(first(), old_[first()], scene_.before);
        expect(first(), new_[first()], scene_.after);

        for (size_t i = 0; i < old_.size(); i++) {
            if (evictions_ == 0 && !client_of(i).is_in_question) {
                expect(i, new_[i], old_[i]);
            }
        }
    }

    /* The first client in question. */
    size_t first() const
    {
        size_t i = 0;

        while (!client_of(i).is_in_question) {
            i++;
        }

        return i;
    }

    const Stage::Client &client_of(size_t i) const
    {
        return stage_.clients()[i % stage_.clients().size()];
    }

    void expect(size_t i, int64_t used, int64_t expected)
    {
        if (used != expected && wrong_.empty()) {
            wrong_ = text("%s has used %" PRId64 " instead of %" PRId64,
                          std::string(client_of(i).look.key).c_str(), used,
                          expected);
        }
    }

    void step(const Deed &deed, bool is_kept)
    {
        bool is_done = step_through(stage_.memory(), deed, [this, is_kept] {
            if (wrong_.empty()) {
                check_next(is_kept);
            }
        });

        if (!is_done && wrong_.empty()) {
            wrong_ = "the child did not come to its end";
        }
    }

    /* What the next process finds if this one is killed now. */
    void check_next(bool is_kept)
    {
        copy_.copy(stage_.memory());
        states_++;

        bool is_half_done = copy_.cells().header().in_change != 0;
        uint64_t recoveries = copy_.table().stats().recoveries;

        if (is_half_done && is_kept) {
            left_.emplace_back(copy_.get(), copy_.get() + copy_.size());
        }

        half_done_ += is_half_done;
        come_next(copy_.table());

        if (copy_.table().stats().recoveries != recoveries + is_half_done) {
            wrong_ = "it was not noticed";
        }

        Walk(copy_.cells()).check_all();
        look(&found_rulings_);
        look(&found_);

        for (size_t i = 0; i < found_rulings_.size() && wrong_.empty(); i++) {
            check_ruled(i);
        }

        for (size_t i = 0; i < found_.size() && wrong_.empty(); i++) {
            check_used(i);
        }
    }

    static bool are_alike(const sl::Ruling &a, const sl::Ruling &b)
    {
        return a.ban_until_us == b.ban_until_us && a.max == b.max
               && a.max_until_us == b.max_until_us;
    }

    void check_ruled(size_t i)
    {
        bool is_new = are_alike(found_rulings_[i], new_rulings_[i]);

        if (!is_new && !are_alike(found_rulings_[i], old_rulings_[i])) {
            wrong_ =
                text("after change %" PRIu64 ": something else is ruled of %s",
                     states_, std::string(client_of(i).look.key).c_str());
        }
    }

    void check_used(size_t i)
    {
        bool is_right = found_[i] == old_[i] || found_[i] == new_[i];

        if (scene_.again > 0 && client_of(i).is_in_question) {
            is_right =
                found_[i] >= std::min(old_[i], new_[i])
                && found_[i] <= std::max(old_[i], new_[i]) + scene_.again;
        }

        if (!is_right) {
            wrong_ = text("after change %" PRIu64 ": %s has used %" PRId64
                          ", not %" PRId64 " or %" PRId64,
                          states_, std::string(client_of(i).look.key).c_str(),
                          found_[i], old_[i], new_[i]);
        }
    }
};

class Test {
  public:
    bool run()
    {
        std::string why_not = why_not_led();

        if (!why_not.empty()) {
            tap_.ok(true, "# SKIP " + why_not);
            return tap_.end();
        }

        for (const auto &scenes :
             {counting(), refusing(), taking_back(), settling(), expiring(),
              remembering(), ruling()})
        {
            for (const Scene &scene : scenes) {
                run(scene);
            }
        }

        tap_.ok(
            evictions_ > 0,
            text("in between %" PRIu64 " clients had to leave", evictions_));
        tap_.note(text("%" PRIu64 " kills in %zu plays, %" PRIu64
                       " of them in the middle of a change",
                       states_, plays_, half_done_));

        return tap_.end();
    }

  private:
    /* One takes as long as several plays. */
    static constexpr size_t kPlaysPerRebuild = 23;

    Tap tap_;
    size_t plays_ = 0;
    uint64_t states_ = 0;
    uint64_t half_done_ = 0;
    uint64_t evictions_ = 0;

    void run(const Scene &scene)
    {
        std::string wrong;
        uint64_t states = states_;
        int crowds = scene.is_alone ? 1 : kCrowds;

        for (int crowd = 0; crowd < crowds && wrong.empty(); crowd++) {
            Play play(scene, static_cast<Crowd>(crowd));
            bool rebuilds = plays_++ % kPlaysPerRebuild == 0;

            wrong = play.run(rebuilds ? plays_ : Play::kNone);
            states_ += play.states();
            half_done_ += play.half_done();
            evictions_ += play.evictions();
        }

        tap_.ok(wrong.empty(),
                text("%s: %" PRIu64 " kills", scene.title, states_ - states));

        if (!wrong.empty()) {
            tap_.note(wrong);
        }
    }
};

}  // namespace

int main()
{
    return Test().run() ? 0 : 1;
}
