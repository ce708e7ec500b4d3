#include "redis/sl_cluster_routes.h"

namespace sl {

namespace {

/* A call that has been sent on so often goes in circles. */
constexpr unsigned kMaxRedirects = 5;

/* A slot on its way to another server takes a moment. */
constexpr ngx_msec_t kTryAgainMs = 10;

/* How often it is looked whether there is a server again for what is to be
 * settled. */
constexpr ngx_msec_t kDeliverMs = 250;

}  // namespace

ClusterRoutes::ClusterRoutes(const RedisSettings &settings,
                             SharedBreakers &breakers,
                             StoreMetrics &metrics) noexcept
    : settings_(settings), nodes_(settings, breakers, metrics, *this),
      owners_(settings, nodes_), is_running_(false),
      try_again_(
          Wakeup::calling<&ClusterRoutes::send_waiting>(this, Wakeup::kNeeded)),
      next_delivery_(Wakeup::calling<&ClusterRoutes::send_postponed>(
          this, Wakeup::kCancelable))
{}

ClusterRoutes::~ClusterRoutes()
{
    stop();
}

bool ClusterRoutes::start() noexcept
{
    is_running_ = true;

    for (ngx_uint_t i = 0; i < settings_.endpoint_count; i++) {
        const RedisEndpoint &seed = settings_.endpoints[i];

        if (nodes_.add(view(seed.host), seed.port) == nullptr) {
            return false;
        }
    }

    owners_.start();

    return true;
}

void ClusterRoutes::stop() noexcept
{
    /* calls that end now must not find servers to go to */
    is_running_ = false;

    try_again_.cancel();
    next_delivery_.cancel();
    postponed_.clear();
    owners_.stop();

    while (!waiting_.is_empty()) {
        waiting_.pop()->reply(Answer::none(StoreError::kUnavailable));
    }

    nodes_.clear();
}

RedisChannel *ClusterRoutes::channel_for(unsigned slot) noexcept
{
    if (!is_running_) {
        return nullptr;
    }

    ClusterNode *owner = owners_.of(slot);
    ClusterNode *node = owner != nullptr ? owner : nodes_.any();

    if (node == nullptr) {
        return nullptr;
    }

    RedisChannel &channel = node->channel_for(slot);

    /* another one may have taken its place, and other workers know it first */
    if (channel.is_away()) {
        owners_.refresh_soon();
    }

    return &channel;
}

bool ClusterRoutes::probe_key(const RedisChannel &channel,
                              RedisKey *key) const noexcept
{
    const ClusterNode *node = nodes_.of(channel);

    if (node == nullptr || !node->has_probe_key) {
        return false;
    }

    *key = node->probe_key;

    return true;
}

/* ---- calls that came to the wrong server ---- */

CallPtr ClusterRoutes::redirect(RedisChannel &from, CallPtr call,
                                std::string_view error) noexcept
{
    Redirection where;

    if (!is_running_) {
        return call;
    }

    if (error.substr(0, error.find(' ')) == "TRYAGAIN") {
        return send_later(std::move(call));
    }

    if (call->add_redirect() > kMaxRedirects
        || !parse_redirection(error, &where)) {
        return call;
    }

    return send_elsewhere(from, std::move(call), where);
}

CallPtr ClusterRoutes::send_elsewhere(const RedisChannel &from, CallPtr call,
                                      const Redirection &where) noexcept
{
    const ClusterNode *node = nodes_.of(from);
    ClusterNode *to =
        node != nullptr ? nodes_.find_or_add(where.to, *node) : nullptr;

    if (!where.is_ask) {
        owners_.moved(where.slot, to);
    }

    if (to == nullptr) {
        return call;
    }

    RedisChannel &channel = to->channel_for(call->slot());

    return channel.adopt(std::move(call), where.is_ask);
}

/*
 * Some keys of the call have moved, and others have not yet. Given back if
 * there is no time left for that and for a reply: then servers that do reply
 * are not blamed for it.
 */
CallPtr ClusterRoutes::send_later(CallPtr call) noexcept
{
    auto needed =
        static_cast<ngx_msec_int_t>(kTryAgainMs + settings_.timeout / 4);

    if (call->time_left() < needed) {
        return call;
    }

    /* it begins anew */
    call->forget_redirects();

    /* the server it came from may be gone before it is tried again */
    call->set_out(*this, settings_.timeout);
    waiting_.push(std::move(call));

    if (!try_again_.is_set()) {
        try_again_.after(kTryAgainMs);
    }

    return nullptr;
}

void ClusterRoutes::timed_out(RedisCall &call) noexcept
{
    give_up(waiting_.take(call), StoreError::kTimeout);
}

void ClusterRoutes::send_waiting() noexcept
{
    /* as many as there are: some may come back */
    for (size_t n = waiting_.size(); n > 0; n--) {
        CallPtr call = waiting_.pop();
        RedisChannel *channel = channel_for(call->slot());

        if (channel != nullptr && call->is_wanted()) {
            call = channel->adopt(std::move(call), false);
        }

        if (call != nullptr) {
            give_up(std::move(call), StoreError::kUnavailable);
        }
    }
}

/* What settles something can wait. */
void ClusterRoutes::give_up(CallPtr call, StoreError why) noexcept
{
    if (call->settles()) {
        call = postpone(std::move(call));
    }

    if (call != nullptr) {
        call->reply(Answer::none(why));
    }
}

CallPtr ClusterRoutes::postpone(CallPtr call) noexcept
{
    if (!is_running_) {
        return call;
    }

    call = postponed_.postpone(std::move(call));

    if (!next_delivery_.is_set()) {
        next_delivery_.after(kDeliverMs);
    }

    return call;
}

void ClusterRoutes::send_postponed() noexcept
{
    postponed_.send_all([this](CallPtr call) {
        RedisChannel *channel = channel_for(call->slot());

        if (channel == nullptr || channel->is_away()) {
            return call;
        }

        call->forget_redirects();

        return channel->adopt(std::move(call), false);
    });

    if (postponed_.size() > 0) {
        next_delivery_.after(kDeliverMs);
    }
}

}  // namespace sl
