#include "redis/sl_sign_of_life.h"

#include "redis/sl_redis_connection.h"

namespace sl {

namespace {

/* Nothing on the way is to see it silent for ten seconds, even if this is said
 * late; and Redis hardly notices. */
constexpr ngx_msec_t kMaxSilenceMs = 5000;

}  // namespace

SignOfLife::SignOfLife(const RedisSettings &settings,
                       RedisConnection &connection) noexcept
    : settings_(settings), connection_(connection),
      timer_(Wakeup::calling<&SignOfLife::wake>(this, Wakeup::kCancelable)),
      is_awaited_(false), heard_at_(0), question_{{on_reply}, this}
{}

void SignOfLife::watch() noexcept
{
    is_awaited_ = false;
    timer_.after(kMaxSilenceMs);
}

void SignOfLife::stop() noexcept
{
    timer_.cancel();
}

void SignOfLife::wake() noexcept
{
    /* the answer may be there, if the worker had no time to read it */
    connection_.read_waiting_input();

    /* and it may have ended the connection, or the wait */
    if (!connection_.is_up() || timer_.is_set()) {
        return;
    }

    ngx_msec_t silence = ngx_current_msec - heard_at_;

    if (is_awaited_) {
        connection_.replace("it does not reply");

    } else if (silence < kMaxSilenceMs) {
        timer_.after(kMaxSilenceMs - silence);

    } else if (connection_.send_probe(&question_, nullptr, 0)) {
        is_awaited_ = true;
        /* as long as a check may stay unanswered */
        timer_.after(2 * settings_.timeout);

    } else {
        connection_.fail(Trouble::kLocal, "out of memory");
    }
}

/* Any reply will do, even an error. */
void SignOfLife::on_reply(RedisCommand *self, redisReply *reply) noexcept
{
    if (reply != nullptr) {
        static_cast<Question *>(self)->sign->watch();
    }
}

}  // namespace sl
