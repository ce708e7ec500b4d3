#include "redis/sl_cluster_routes.h"

namespace sl {

namespace {

/* A call that has been sent on so often goes in circles. */
constexpr unsigned kMaxRedirects = 5;

/* A slot on its way to another server takes a moment. */
constexpr ngx_msec_t kTryAgainMs = 10;

}  // namespace

ClusterRoutes::ClusterRoutes(const RedisSettings &settings,
                             SharedBreakers &breakers,
                             StoreMetrics &metrics) noexcept
    : settings_(settings), nodes_(settings, breakers, metrics, *this),
      owners_(settings, nodes_), is_running_(false), waiting_(),
      try_again_(
          Wakeup::calling<&ClusterRoutes::send_waiting>(this, Wakeup::kNeeded))
{
    ngx_queue_init(&waiting_);
}

ClusterRoutes::~ClusterRoutes()
{
    stop();
}

void ClusterRoutes::start() noexcept
{
    is_running_ = true;

    for (ngx_uint_t i = 0; i < settings_.endpoint_count; i++) {
        const RedisEndpoint &seed = settings_.endpoints[i];

        nodes_.add(view(seed.host), seed.port);
    }

    owners_.start();
}

void ClusterRoutes::stop() noexcept
{
    /* calls that end now must not find servers to go to */
    is_running_ = false;

    try_again_.cancel();
    owners_.stop();

    /* before the servers whose channels they know */
    while (!ngx_queue_empty(&waiting_)) {
        give_up(next_waiting());
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

bool ClusterRoutes::redirect(RedisCall *call, std::string_view error) noexcept
{
    Redirection where;

    if (!is_running_) {
        return false;
    }

    if (error.substr(0, error.find(' ')) == "TRYAGAIN") {
        return send_later(call);
    }

    return ++call->redirects <= kMaxRedirects
           && parse_redirection(error, &where) && send_elsewhere(call, where);
}

bool ClusterRoutes::send_elsewhere(RedisCall *call,
                                   const Redirection &where) noexcept
{
    const ClusterNode *from = nodes_.of(*call->channel);
    ClusterNode *to =
        from != nullptr ? nodes_.find_or_add(where.to, *from) : nullptr;

    if (!where.is_ask) {
        owners_.moved(where.slot, to);
    }

    return to != nullptr
           && to->channel_for(call->slot).adopt(call, where.is_ask);
}

/*
 * Some keys of the call have moved, and others have not yet. False if there is
 * no time left for that and for a reply: so no call's time ends while it waits
 * here, and servers that do reply are not blamed for it.
 */
bool ClusterRoutes::send_later(RedisCall *call) noexcept
{
    auto left =
        static_cast<ngx_msec_int_t>(call->timer.timer.key - ngx_current_msec);
    auto needed =
        static_cast<ngx_msec_int_t>(kTryAgainMs + settings_.timeout / 4);
    ClusterNode *from = nodes_.of(*call->channel);

    if (from == nullptr || !call->timer.timer_set || left < needed) {
        return false;
    }

    /* it begins anew */
    call->redirects = 0;

    ngx_queue_insert_tail(&waiting_, static_cast<ngx_queue_t *>(call));
    from->waiting_calls++;

    if (!try_again_.is_set()) {
        try_again_.after(kTryAgainMs);
    }

    return true;
}

RedisCall *ClusterRoutes::next_waiting() noexcept
{
    auto *call = static_cast<RedisCall *>(ngx_queue_head(&waiting_));

    ngx_queue_remove(static_cast<ngx_queue_t *>(call));
    nodes_.of(*call->channel)->waiting_calls--;

    return call;
}

void ClusterRoutes::send_waiting() noexcept
{
    while (!ngx_queue_empty(&waiting_)) {
        RedisCall *call = next_waiting();
        RedisChannel *channel = channel_for(call->slot);
        bool is_wanted = call->receiver != nullptr || !call->is_question;

        if (!is_wanted || channel == nullptr || !channel->adopt(call, false)) {
            give_up(call);
        }
    }
}

void ClusterRoutes::give_up(RedisCall *call) noexcept
{
    call->reply(Answer::none(StoreError::kUnavailable));
    delete call;
}

}  // namespace sl
