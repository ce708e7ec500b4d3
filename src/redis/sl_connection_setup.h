/*
 * What is said on a new connection before it is of use, in two round trips:
 *
 *   who we are, which database we want, whether the server is a primary ──▶
 *   ◀── the answers: we are let in
 *   the script, and a call of it that shows that counting works ──▶
 *   ◀── the answers: it is set up
 *
 * The first part goes out before the connection is even open. The second has to
 * wait for its answers: of a client that has not logged in Redis takes neither
 * a word of more than 16 KB nor a command of more than ten words, but closes
 * the connection. What it has said of the password may be lost then.
 *
 * If the server should be able to decide about keys of different slots, the
 * call is about two of them: if it is not, that is better known before there
 * are requests.
 */

#pragma once

#include "redis/pure/sl_redis_error.h"
#include "redis/sl_redis_command.h"
#include "redis/sl_redis_context.h"
#include "redis/sl_redis_user.h"

namespace sl {

class RedisConnection;

class ConnectionSetup {
  public:
    /* Tells the connection of the end: set_up() or fail(). */
    ConnectionSetup(const RedisSettings &settings, RedisConnection &connection,
                    RedisUser &user) noexcept;

    ConnectionSetup(const ConnectionSetup &) = delete;
    ConnectionSetup &operator=(const ConnectionSetup &) = delete;

    /* The server has let us in: the script is there, or on its way. */
    bool is_let_in() const noexcept { return unanswered_ == 0; }

    /* Each of these is false if there is no memory or no connection. */
    bool start() noexcept;

    /* Loads the script (again), unless that is on its way. */
    bool send_script() noexcept;

    /* Logs in once more if the password is from a file: with a new one. If the
     * server refuses it, the connection stays as it was. */
    bool send_new_login() noexcept;

    /* Has the server accept the next command although it does not have the key
     * yet. */
    bool send_asking() noexcept;

  private:
    /*
     * What the server has been asked about, and says next. Perhaps it refuses a
     * call only because that is about two keys:
     *
     *   two keys ──CROSSSLOT──▶ one of the two: an answer proves it
     *      └─────another error──▶ one, before two again: both are asked at once
     *                              └──answer──▶ two again: an error proves it
     */
    enum class Probe {
        kNoKey,
        kOneKey,
        kTwoKeys,
        kOneOfTwo,
        kOneBeforeTwo,
        kTwoAgain,
    };

    /* One of the commands; its reply must not be an error. */
    struct SetupCommand : RedisCommand {
        ConnectionSetup *setup;
    };

    bool knock() noexcept;
    bool send_login() noexcept;
    bool send_select() noexcept;
    bool send_role() noexcept;
    void knock_answered() noexcept;
    bool send_first_probe() noexcept;
    bool send_probe(size_t keys) noexcept;
    void probe_answered() noexcept;
    void probe_refused(std::string_view error) noexcept;
    void probe_again(RedisError because) noexcept;
    void set_up(bool has_slots) noexcept;
    void refused(std::string_view error) noexcept;
    void new_login_refused(std::string_view error) noexcept;

    static void on_reply(RedisCommand *self, redisReply *reply) noexcept;
    static void on_knock(RedisCommand *self, redisReply *reply) noexcept;
    static void on_login(RedisCommand *self, redisReply *reply) noexcept;
    static void on_new_login(RedisCommand *self, redisReply *reply) noexcept;
    static void on_role(RedisCommand *self, redisReply *reply) noexcept;
    static void on_script(RedisCommand *self, redisReply *reply) noexcept;
    static void on_probe(RedisCommand *self, redisReply *reply) noexcept;

    const RedisSettings &settings_;
    RedisConnection &connection_;
    RedisUser &user_;

    /* How many commands of the first part have no answer yet. */
    unsigned unanswered_;

    Probe probe_;

    /* SCRIPT LOAD is on its way: no need for a second one. */
    bool script_loading_;

    SetupCommand command_;
    SetupCommand knock_command_;
    SetupCommand login_command_;
    SetupCommand new_login_command_;
    SetupCommand role_command_;
    SetupCommand script_command_;
    SetupCommand probe_command_;
};

}  // namespace sl
