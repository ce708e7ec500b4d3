/*
 * Does something about one client, by lua/client.lua, and tells the operator
 * who wants it where the client stands then. Lives until that is told, or the
 * operator is gone.
 */

#pragma once

#include "redis/sl_redis_errand.h"

namespace sl {

class ClientErrand final : public PendingQuestion, private ErrandReceiver {
  public:
    /* As Store::intervene(). */
    static PendingQuestion *send(const ErrandDesk &desk,
                                 const LimitQuery &client,
                                 const Intervention &intervention,
                                 OperatorReceiver &receiver) noexcept;

    ClientErrand(const ClientErrand &) = delete;
    ClientErrand &operator=(const ClientErrand &) = delete;

    void abandon(bool) noexcept override;

  private:
    ClientErrand(const RedisKey &key, bool changes_something,
                 OperatorReceiver &receiver) noexcept
        : key_(key), changes_something_(changes_something), receiver_(receiver),
          call_(nullptr)
    {}

    ~ClientErrand() = default;

    bool replied(const redisReply &reply,
                 std::string_view server) noexcept override;
    void refused(StoreError error, std::string_view reason,
                 std::string_view server) noexcept override;
    void receive(const Answer &none) noexcept override;

    void tell(ClientAnswer &answer) noexcept;
    void tell_uncertain(ErrandFailure failure,
                        std::string_view server) noexcept;

    const RedisKey key_;
    const bool changes_something_;
    OperatorReceiver &receiver_;

    /* On its way for as long as this lives. */
    RedisCall *call_;
};

}  // namespace sl
