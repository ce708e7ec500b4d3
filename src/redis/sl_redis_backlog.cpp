#include "redis/sl_redis_backlog.h"

namespace sl {

namespace {

constexpr size_t kMostPostponed = 10000;

}  // namespace

CallPtr Backlog::postpone(CallPtr call) noexcept
{
    if (calls_.size() >= kMostPostponed) {
        return call;
    }

    call->start_over();
    hold(std::move(call));

    return nullptr;
}

void Backlog::drop_questions() noexcept
{
    for (size_t n = calls_.size(); n > 0; n--) {
        CallPtr call = calls_.pop();

        if (call->settles()) {
            hold(std::move(call));
        } else {
            call->reply(Answer::none(StoreError::kConnection));
        }
    }
}

void Backlog::clear() noexcept
{
    while (!calls_.is_empty()) {
        calls_.pop();
    }
}

}  // namespace sl
