/*
 * Sees to it that a connection comes back, and that all workers know meanwhile
 * not to wait for it, by a breaker.
 *
 * While the breaker is open one connection of one worker looks for the server's
 * return, by a probe; the others wait for the breaker to close and connect
 * then. A connection that cannot be had although others are up is tried again
 * by itself, and the breaker stays closed. A server that refuses us is left
 * alone for a while either way, unless a password changes.
 */

#pragma once

#include "base/sl_wakeup.h"
#include "redis/pure/sl_worker_breaker.h"
#include "redis/sl_redis_connection.h"
#include "redis/sl_redis_log.h"
#include "store/sl_store.h"

namespace sl {

/* Whoever has the connection, and calls on their way over it. */
class RecoveryUser {
  public:
    /* Sends a probe, whose answer is for `receiver`. False: it cannot. */
    virtual bool send_probe(AnswerReceiver &receiver) noexcept = 0;

    /*
     * Gives the connection up if it has stalled. True if it may turn out that
     * it has: then this is to be called again soon.
     */
    virtual bool look_after_calls() noexcept = 0;

  protected:
    ~RecoveryUser() = default;
};

class RedisRecovery final : private AnswerReceiver {
  public:
    RedisRecovery(const RedisSettings &settings, WorkerBreaker &breaker,
                  StoreMetrics &metrics, RedisLog &log,
                  RedisConnection &connection, RecoveryUser &user) noexcept;

    ~RedisRecovery() { stop(); }

    RedisRecovery(const RedisRecovery &) = delete;
    RedisRecovery &operator=(const RedisRecovery &) = delete;

    void stop() noexcept;

    /* What is known by all workers: the server is not worth asking. */
    bool is_down() const noexcept { return breaker_.is_open(); }

    /* Why this connection is down, if that says nothing about others; empty: it
     * is not. */
    std::string_view reason() const noexcept { return reason_.text(); }

    /* Looks soon whether there is something to be done. */
    void look_soon() noexcept;

    /* Tries soon if the server may have refused us for an old password. */
    void try_new_login() noexcept;

    /* A check was not asked. */
    void turned_away() noexcept;

    /* The server has answered in time; or it has not. */
    void succeeded() noexcept { breaker_.succeeded(); }
    void timed_out() noexcept;

    /* What the connection tells whoever uses it. */
    void connected() noexcept;
    void disconnected(Trouble trouble, std::string_view reason,
                      ngx_msec_t began) noexcept;
    void reconnecting() noexcept { set_connected(false); }

  private:
    void recover() noexcept;
    int64_t probe_span() const noexcept;
    void use_ticket() noexcept;
    void probe() noexcept;
    void receive(const Answer &of_probe) noexcept override;
    void probe_failed(int64_t least_delay) noexcept;
    void set_connected(bool is_connected) noexcept;
    void say_it_is_down(Trouble trouble, std::string_view reason) noexcept;

    const RedisSettings &settings_;
    WorkerBreaker &breaker_;
    StoreMetrics &metrics_;
    RedisLog &log_;
    RedisConnection &connection_;
    RecoveryUser &user_;

    /* Runs while the connection or the breaker needs to be looked after. */
    Wakeup timer_ =
        Wakeup::calling<&RedisRecovery::recover>(this, Wakeup::kCancelable);

    /* The breaker counts this connection as up. */
    bool is_connected_;

    /* While this connection is the one that probes; 0: it is not. */
    Breaker::Ticket ticket_;

    /* When to connect again at the earliest. */
    int64_t not_before_;

    /* Why this connection is down, if others may be up; empty: all are. */
    OneLine reason_;
};

}  // namespace sl
