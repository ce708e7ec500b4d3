/*
 * The embedded store's table and the script in a real Redis, asked the same at
 * the same times: both must say what the model says, so they say the same. The
 * bytes are the chance in what t/model plans.
 *
 * The clock of the script may step back, too, and several requests come at the
 * same time: then only the script is asked.
 */

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "fuzz.h"
#include "sl_asked_table.h"
#include "sl_judge.h"
#include "sl_script.h"

namespace {

using namespace sl_model;

/* A Redis that ends with this process, however that ends. */
class RedisServer {
  public:
    RedisServer()
    {
        char dir[] = "/tmp/sliding_limit_fuzz.XXXXXX";

        check(mkdtemp(dir) != nullptr);

        std::string socket = std::string(dir) + "/redis";

        pid_ = fork();

        if (pid_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            execlp("redis-server", "redis-server", "--port", "0",
                   "--unixsocket", socket.c_str(), "--save", "", "--dir", dir,
                   "--logfile", "/dev/null", nullptr);
            _exit(1);
        }

        connection_ = std::make_unique<Redis>(connect(socket));
        unlink(socket.c_str());
        rmdir(dir);
    }

    ~RedisServer()
    {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }

    RedisServer(const RedisServer &) = delete;
    RedisServer &operator=(const RedisServer &) = delete;

    Redis &connection() { return *connection_; }

  private:
    pid_t pid_;
    std::unique_ptr<Redis> connection_;

    redisContext *connect(const std::string &socket)
    {
        redisContext *context = redisConnectUnix(socket.c_str());

        for (int tries = 0; tries < 3000 && context->err != 0; tries++) {
            check(waitpid(pid_, nullptr, WNOHANG) == 0);
            usleep(10000);
            redisFree(context);
            context = redisConnectUnix(socket.c_str());
        }

        return context;
    }
};

/* Says what is wrong, and ends it all. */
void judge(const Round &round, const char *who, Judge *judge, size_t call,
           const std::vector<int64_t> &numbers)
{
    std::string wrong = judge->judge(round.calls[call], numbers);
    Tap tap;

    if (!wrong.empty()) {
        tap.note(who);
        report(&tap, round, judge->wrong_key(), call, wrong);
        fflush(stdout);
        abort();
    }
}

void ask_table(const Round &round)
{
    constexpr size_t kSize = 1 << 20;
    static std::unique_ptr<void, decltype(&free)> memory(
        aligned_alloc(64, kSize), &free);
    const uint8_t secret[sl::MemoryTable::kSecretSize] = {};
    Tally tally;
    Judge judges(*round.mix, &tally);

    sl::MemoryTable::format(memory.get(), kSize, secret);

    AskedTable asked(sl::MemoryTable(memory.get(), kSize));

    for (size_t i = 0; i < round.calls.size(); i++) {
        judge(round, "the table", &judges, i, asked.answer(round.calls[i]));
    }
}

void ask_script(const Round &round)
{
    static RedisServer server;
    Redis &redis = server.connection();
    static const std::string script =
        load_script(&redis, steered(output_of("sh lua/assemble"), false));
    Tally tally;
    Judge judges(*round.mix, &tally);

    for (size_t i = 0; i < round.calls.size(); i += asked_at_once(round, i)) {
        append_calls(&redis, script, &round.calls[i], asked_at_once(round, i));
    }

    for (size_t i = 0; i < round.calls.size();) {
        size_t count = asked_at_once(round, i);
        Reply reply = redis.read();

        for (size_t n = 0; n < count; n++, i++) {
            judge(round, "the script", &judges, i,
                  numbers_of(*reply, n, count, round.calls[i].limits.size()));
        }
    }

    redis.call({"FLUSHALL"});
}

std::vector<Mix> short_mixes()
{
    std::vector<Mix> list = mixes();

    for (Mix &mix : list) {
        mix.requests = std::min(mix.requests, 300);
    }

    return list;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const std::vector<Mix> all = short_mixes();
    Input input(data, size);
    const Mix &mix = all[input.number<uint8_t>() % all.size()];
    bool is_for_both = !mix.steps_back && input.number<uint8_t>() % 2 == 0;
    std::string bytes = input.rest();
    Store script = kRedis;

    script.is_monotonic = is_for_both;

    if (is_for_both) {
        ask_table(Planner(mix, kMemory, 1, Random(bytes)).plan());
    }

    ask_script(Planner(mix, script, 1, Random(bytes)).plan());

    return 0;
}
