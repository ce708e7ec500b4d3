/*
 * The store that counts in Redis: turns a question into one EVALSHA and its
 * reply into an answer, and sees to it that nobody waits longer than `timeout`.
 *
 * All calls of a worker go over one connection in order: what is taken back is
 * taken back after it was counted, and before anything asked later. What cannot
 * be taken back because Redis is away waits for its return.
 *
 * When it is away is known to all workers, by a breaker. One of them looks for
 * its return; the others wait for the breaker to close and connect then.
 */

#pragma once

#include "../core/sl_breaker.h"
#include "../sl_nginx.h"
#include "../sl_store.h"
#include "sl_redis_connection.h"

namespace sl {

class RedisStore final : public Store,
                         private RedisUser,
                         private AnswerReceiver {
  public:
    explicit RedisStore(const RedisSettings &settings) noexcept;

    /*
     * The memory for its breaker; false, with a message, if there is none. To
     * be called once, and before start().
     */
    bool share(ngx_conf_t *cf, const ngx_str_t &name) noexcept;

    std::string_view kind() const noexcept override { return "redis"; }
    PendingQuestion *ask(const Query &query, AnswerReceiver &receiver,
                         Answer *answer) noexcept override;
    void take_back(const Query &query, int64_t time_us) noexcept override;
    void start() noexcept override;
    void stop() noexcept override;

  private:
    struct Call;
    struct ScriptArgs;
    struct Provisional;

    Call *new_call(const ScriptArgs &args) noexcept;
    void take_back(const ScriptArgs &all) noexcept;
    void take_back_counted(const Provisional &provisional,
                           const Answer &answer) noexcept;
    void take_back_uncertain(const Provisional &provisional) noexcept;
    void send_or_postpone(Call *call) noexcept;
    void postpone(Call *call) noexcept;
    void connected() noexcept override;
    void disconnected(Trouble trouble, std::string_view reason,
                      ngx_msec_t began) noexcept override;
    Breaker breaker() const noexcept;
    void log_down(Trouble trouble, std::string_view reason) noexcept;
    void recover() noexcept;
    void recover_soon() noexcept;
    void probe() noexcept;
    void receive(const Answer &of_probe) noexcept override;
    void probe_failed(ngx_msec_t least_delay) noexcept;
    bool send(Call *call) noexcept;
    void settle(Call *call, const redisReply *reply) noexcept;
    bool retry_with_script(Call *call) noexcept;
    void report_error(std::string_view error) noexcept;
    bool is_stalled() const noexcept;
    bool drop_if_stalled() noexcept;
    void complain(std::string_view what) noexcept;

    static void on_reply(RedisCommand *command, redisReply *reply) noexcept;
    static void on_timeout(ngx_event_t *ev) noexcept;
    static void on_recovery(ngx_event_t *ev) noexcept;
    static ngx_int_t init_shared(ngx_shm_zone_t *zone, void *old) noexcept;

    const RedisSettings &settings_;
    RedisConnection connection_;

    ngx_shm_zone_t *shared_;

    /* Runs while the connection or the breaker needs to be looked after. */
    ngx_event_t recovery_;

    /* While this worker is the one that probes. */
    Breaker::Ticket ticket_;

    /* Calls without a reply yet, the oldest first. */
    ngx_queue_t calls_;
    ngx_uint_t call_count_;

    /* Calls that take something back and wait for a connection. */
    ngx_queue_t backlog_;
    ngx_uint_t backlog_count_;

    /* The call whose timeout is being dealt with; nullptr once it is gone. */
    const Call *expiring_;

    /* Failures since the last complaint in the log, and when that was. */
    ngx_uint_t silent_failures_;
    ngx_msec_t complained_at_;
};

}  // namespace sl
