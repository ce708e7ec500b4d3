/*
 * Looks for clients in a zone about whom something was ruled, for an operator:
 * asks one server after the other for the names by which they are found (SCAN),
 * some at a time, and then what was ruled about each.
 *
 * As SCAN itself does, it finds all that are there from its beginning to its
 * end; what comes or goes meanwhile, or moves to another server, it may miss,
 * or tell of in two answers. If it turns out on the way that servers have other
 * slots than was thought, it goes to all of them once more: one may have been
 * taken for another.
 *
 * Replies are only noted when they come. All else happens outside of hiredis,
 * at the end of that turn of the event loop. So nothing ends while it is in
 * use.
 */

#pragma once

#include "base/sl_wakeup.h"
#include "redis/pure/sl_scan_place.h"
#include "redis/sl_redis_errand.h"

namespace sl {

class RulingsWalk;

/* Those that are under way. */
class RulingsWalks {
  public:
    RulingsWalks() noexcept : first_(nullptr) {}

    RulingsWalks(const RulingsWalks &) = delete;
    RulingsWalks &operator=(const RulingsWalks &) = delete;

    /* As Store::list_rulings(). */
    PendingQuestion *start(const ErrandDesk &desk, std::string_view zone,
                           std::string_view cursor,
                           OperatorReceiver &receiver) noexcept;

    /* The worker exits: all are told that nothing comes of it. */
    void end() noexcept;

  private:
    friend class RulingsWalk;

    size_t size() const noexcept;

    RulingsWalk *first_;
};

class RulingsWalk final : public PendingQuestion, private ErrandReceiver {
  public:
    RulingsWalk(const ErrandDesk &desk, std::string_view zone,
                const ScanPlace &from, OperatorReceiver &receiver,
                RulingsWalks &all) noexcept;
    ~RulingsWalk();

    RulingsWalk(const RulingsWalk &) = delete;
    RulingsWalk &operator=(const RulingsWalk &) = delete;

    void abandon(bool) noexcept override { delete this; }

    /* Does what is next. False: that was the last, and this is gone. */
    bool go_on() noexcept;

    /* Tells the operator that nothing comes of it, and is gone. */
    void fail(const ErrandFailure &failure) noexcept;

  private:
    friend class RulingsWalks;

    /* A client that was found. It knows what was ruled once it was asked. */
    class Found;

    void scan() noexcept;
    bool is_at_end() const noexcept;
    bool has_enough() const noexcept;
    void begin_anew_if_map_changed() noexcept;
    void wait_for_server() noexcept;
    bool look_up_found() noexcept;
    void tell() noexcept;

    bool replied(const redisReply &reply,
                 std::string_view server) noexcept override;
    void refused(StoreError error, std::string_view reason,
                 std::string_view server) noexcept override;
    void receive(const Answer &none) noexcept override;

    bool add(std::string_view name) noexcept;
    bool has(std::string_view name) const noexcept;
    void note(const ErrandFailure &failure) noexcept;
    void go_on_later() noexcept { next_.at_end_of_turn(); }
    void wake() noexcept { go_on(); }

    std::string_view zone() const noexcept { return {zone_, zone_size_}; }

    const ErrandDesk desk_;
    char zone_[kMaxZoneName];
    size_t zone_size_;
    OperatorReceiver &receiver_;

    RulingsWalks &all_;
    RulingsWalk *next_walk_;

    /* Where it is, and whether a server has begun and is not done. */
    ScanPlace place_;
    bool is_on_server_;
    size_t steps_;

    /* RedisRoutes::map_changes() when it began at the first server. */
    unsigned map_changes_;

    /* The SCAN that is on its way; nullptr: none is. */
    RedisCall *scan_;

    /* All that were found, the latest first. */
    Found *found_;
    size_t count_;

    /* The first that has been asked about, with all that follow it. */
    Found *looked_up_;
    size_t on_their_way_;

    bool has_failed_;
    ErrandFailure failure_;

    /* Since when it waits to learn of a server; 0: it does not. */
    ngx_msec_t waits_since_;
    Wakeup next_;
};

}  // namespace sl
