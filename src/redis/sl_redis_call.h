/*
 * A call of the script: what it says, who waits for the answer, and
 * what has to be done if nobody does. Or an errand, some other command that an
 * operator has a use for; it takes the same way, but alone.
 *
 * A call has one owner at a time: whoever holds its CallPtr, or the CallQueue
 * it is in. It may live long after its asker gave up or went away: until its
 * reply has come, or the connection broke. Functions that may be unable to take
 * a call over return it then, and nullptr if it is theirs.
 */

#pragma once

#include <memory>
#include <utility>

#include "base/sl_wakeup.h"
#include "redis/sl_redis_command.h"
#include "redis/sl_script_call.h"

namespace sl {

class RedisCall;

using CallPtr = std::unique_ptr<RedisCall>;

/* What is to be taken back if the answer finds nobody. */
class Provisional {
  public:
    /* nullptr if nothing in the question ever is, or without memory. */
    static std::unique_ptr<Provisional> of(const Query &query,
                                           const ScriptArgs &all) noexcept;

    /* From now on only what would have been settled later is to be taken back.
     */
    void keep_provisional() noexcept;

    /* What is to be taken back of what this answer says was counted.
     * `is_abandoned`: its asker had gone. */
    ScriptArgs counted_in(const Answer &answer,
                          bool is_abandoned) const noexcept;

    /* The answer was lost: all of it, as nobody knows what was counted. */
    ScriptArgs uncertain(bool is_abandoned) const noexcept;

  private:
    /* One of its limits. */
    struct Kept {
        ScriptLimit limit;

        /* Which one of the question it is. */
        size_t index;

        /* It is not provisional, and would be settled later: an answer that is
         * only late leaves it counted. */
        bool if_abandoned;
    };

    Provisional() noexcept : count_(0), slot_(0), id_(), id_size_(0) {}

    template <typename Predicate>
    ScriptArgs args_of(bool is_abandoned, int64_t time_us,
                       Predicate is_counted) const noexcept;

    /* As many as there are, for most often that is one or two. */
    std::unique_ptr<Kept[]> kept_;
    size_t count_;
    unsigned slot_;
    char id_[kUuidSize];
    size_t id_size_;
};

/*
 * Whoever sends an errand, and is told exactly one of these, inside hiredis:
 * what the server said, or, by receive(), why there will be no reply.
 */
class ErrandReceiver : public AnswerReceiver {
  public:
    /* False: that is no reply to it. */
    virtual bool replied(const redisReply &reply,
                         std::string_view server) noexcept = 0;

    /* The server has not done it, and says why. */
    virtual void refused(StoreError error, std::string_view reason,
                         std::string_view server) noexcept = 0;

  protected:
    ~ErrandReceiver() = default;
};

/* Who has calls on their way, and is told what becomes of them. */
class CallCarrier {
  public:
    /*
     * The reply to one command that has asked for these: one call, or several
     * that are alike. nullptr: the connection broke first.
     */
    virtual void replied(RedisCall *const *calls, size_t count,
                         const redisReply *reply) noexcept = 0;

    /* Its time is up. */
    virtual void timed_out(RedisCall &call) noexcept = 0;

  protected:
    ~CallCarrier() = default;
};

class RedisCall final : public RedisCommand,
                        public PendingQuestion,
                        private ngx_queue_t {
  public:
    enum class Kind {
        kQuestion,
        kProbe,      /* asks to see whether the server answers */
        kSettle,     /* may be tried again, however often it has run */
        kSettleOnce, /* may not */
        kErrand,
    };

    /* nullptr: out of memory. `receiver` gets the answer, if there is one. */
    static CallPtr create(Kind kind, const ScriptArgs &args,
                          AnswerReceiver *receiver) noexcept;

    /* Of a command in Redis's protocol; the slot is as ScriptArgs has it. */
    static CallPtr create_errand(std::string_view command, unsigned slot,
                                 ErrandReceiver &receiver) noexcept;

    /* It is larger than its type: the command stands behind it. */
    static void operator delete(void *memory) noexcept;

    ~RedisCall();

    RedisCall(const RedisCall &) = delete;
    RedisCall &operator=(const RedisCall &) = delete;

    /* ---- what it says ---- */

    bool is_probe() const noexcept { return kind_ == Kind::kProbe; }

    /* It changes what was counted before. */
    bool settles() const noexcept
    {
        return kind_ == Kind::kSettle || kind_ == Kind::kSettleOnce;
    }

    bool is_repeatable() const noexcept { return kind_ == Kind::kSettle; }

    bool is_errand() const noexcept { return kind_ == Kind::kErrand; }

    /* How many limits it is about; an errand is about none. */
    size_t limits() const noexcept { return limits_; }

    /* As ScriptArgs has it. */
    unsigned slot() const noexcept { return slot_; }

    /* In Redis's protocol. */
    std::string_view command() const noexcept { return command_; }

    /* Whether it can be asked in one command with other calls that are alike.
     */
    bool may_be_joined() const noexcept { return may_be_joined_; }
    bool is_like(const RedisCall &other) const noexcept
    {
        return shared_ == other.shared_;
    }

    /* Such a command has the keys and the ids of all its calls, and once the
     * words that they share. Where no ids are kept there are none. */
    std::string_view keys() const noexcept { return keys_; }
    std::string_view shared() const noexcept { return shared_; }
    std::string_view id() const noexcept { return id_; }

    /* From now on it is asked alone. */
    void part() noexcept { may_be_joined_ = false; }

    /* ---- who waits for it ---- */

    /* What nobody waits for need not be sent, unless it settles something that
     * still counts. */
    bool is_wanted() const noexcept
    {
        return receiver_ != nullptr || (settles() && !is_outdated());
    }

    bool is_awaited() const noexcept { return receiver_ != nullptr; }

    /* Answers whoever still waits. */
    void reply(const Answer &answer) noexcept;

    /* Of an errand: whoever still waits, and is to be told by the caller then.
     * nullptr: nobody does. */
    ErrandReceiver *end_errand() noexcept;

    /* The timer stays: that no reply comes is worth knowing all the same. */
    void abandon(bool keep_provisional) noexcept override;
    bool is_abandoned() const noexcept { return is_abandoned_; }

    /* nullptr: there is nothing to take back. */
    const Provisional *provisional() const noexcept
    {
        return provisional_.get();
    }

    void set_provisional(std::unique_ptr<Provisional> provisional) noexcept
    {
        provisional_ = std::move(provisional);
    }

    /* ---- if it settles something ---- */

    /* After so long nothing of it is in any window. */
    void set_outdated_after(ngx_msec_t time) noexcept
    {
        outdated_at_ = ngx_current_msec + time;
    }

    /* What is tried instead if this may not be tried again. */
    void set_repeatable_part(CallPtr part) noexcept
    {
        repeatable_part_ = std::move(part);
    }

    CallPtr take_repeatable_part() noexcept
    {
        return std::move(repeatable_part_);
    }

    /* ---- on its way ---- */

    /* Whoever waits has waited for Redis before, and has less time than Redis.
     */
    void set_waited(ngx_msec_t waited) noexcept { waited_ = waited; }

    /* Whoever waits does so from the first time it was sent. */
    void set_out(CallCarrier &carrier, ngx_msec_t timeout) noexcept;

    /* Until its time is up. */
    ngx_msec_int_t time_left() const noexcept
    {
        return timer_.is_set() ? timer_.left() : 0;
    }

    /* Its time is up and the reply has not come. */
    bool is_late() const noexcept { return is_late_; }
    void set_late() noexcept;

    /* How long ago that was noticed, or how long another server has had it. */
    ngx_msec_t late_for() const noexcept
    {
        return ngx_current_msec - late_since_;
    }

    /* That it is late is not the doing of the server it goes to now. */
    void excuse() noexcept { late_since_ = ngx_current_msec; }

    /* It is to be sent again, whenever that may be: its time begins anew. */
    void start_over() noexcept;

    /* Redis has lost the script. False if that has happened to this call
     * before. */
    bool may_be_retried() noexcept { return !std::exchange(is_retried_, true); }

    /* Another server has sent it to one that does not have the key yet, and has
     * to be told. */
    bool needs_asking() const noexcept { return needs_asking_; }
    void set_asking(bool needs) noexcept { needs_asking_ = needs; }

    /* Returns how often it has been sent elsewhere, this time included. */
    unsigned add_redirect() noexcept { return ++redirects_; }
    void forget_redirects() noexcept { redirects_ = 0; }

    /*
     * Looks whether a call outlives something that may answer it. A call that
     * starts over meanwhile counts as gone, too: nobody waits for it any more.
     */
    class Watch {
      public:
        explicit Watch(RedisCall &call) noexcept : call_(&call)
        {
            call.watch_ = this;
        }

        ~Watch() { end(); }

        Watch(const Watch &) = delete;
        Watch &operator=(const Watch &) = delete;

        bool is_gone() const noexcept { return call_ == nullptr; }

      private:
        friend class RedisCall;

        void end() noexcept
        {
            if (call_ != nullptr) {
                call_->watch_ = nullptr;
                call_ = nullptr;
            }
        }

        RedisCall *call_;
    };

  private:
    friend class CallQueue;

    RedisCall(Kind kind, size_t limits, unsigned slot,
              AnswerReceiver *receiver) noexcept;

    static CallPtr create(Kind kind, size_t limits, unsigned slot,
                          AnswerReceiver *receiver,
                          std::string_view command) noexcept;

    void end_time() noexcept;

    bool is_outdated() const noexcept
    {
        return static_cast<ngx_msec_int_t>(ngx_current_msec - outdated_at_) > 0;
    }

    static void on_reply_to_it(RedisCommand *self, redisReply *reply) noexcept;

    const Kind kind_;
    const size_t limits_;
    const unsigned slot_;

    /* The parts are parts of the command. */
    std::string_view command_;
    std::string_view keys_;
    std::string_view shared_;
    std::string_view id_;
    bool may_be_joined_;

    /* nullptr once answered, timed out or abandoned. */
    AnswerReceiver *receiver_;
    std::unique_ptr<Provisional> provisional_;
    CallPtr repeatable_part_;
    ngx_msec_t outdated_at_;

    /* Who had it on its way last. */
    CallCarrier *carrier_;
    ngx_msec_t waited_;
    Wakeup timer_;
    bool is_late_;
    ngx_msec_t late_since_;
    Watch *watch_;

    bool is_abandoned_;
    bool is_retried_;
    bool needs_asking_;
    unsigned redirects_;
};

/* Calls, the oldest first. They are the queue's. */
class CallQueue {
  public:
    CallQueue() noexcept : head_(), size_(0) { ngx_queue_init(&head_); }
    ~CallQueue();

    CallQueue(const CallQueue &) = delete;
    CallQueue &operator=(const CallQueue &) = delete;

    size_t size() const noexcept { return size_; }
    bool is_empty() const noexcept { return size_ == 0; }

    void push(CallPtr call) noexcept;

    /* The oldest; nullptr: there is none. */
    CallPtr pop() noexcept;

    /* One that is in it. */
    CallPtr take(RedisCall &call) noexcept;

    /* nullptr: there is none, or none behind it. */
    RedisCall *first() const noexcept;
    RedisCall *next(const RedisCall &call) const noexcept;

  private:
    RedisCall *call_at(ngx_queue_t *place) const noexcept;

    mutable ngx_queue_t head_;
    size_t size_;
};

}  // namespace sl
