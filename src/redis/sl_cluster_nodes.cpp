#include "redis/sl_cluster_nodes.h"

#include <algorithm>
#include <new>

#include "base/pure/sl_words.h"

namespace sl {

namespace {

template <size_t kRoom>
size_t copy_text(std::string_view text, char (&to)[kRoom])
{
    size_t size = text.copy(to, kRoom - 1);

    to[size] = '\0';

    return size;
}

}  // namespace

/* ---- one server ---- */

ClusterNode::ClusterNode(std::string_view host, in_port_t port,
                         const RedisSettings &settings,
                         SharedBreakers &breakers) noexcept
    : settings_(settings), breakers_(breakers), host_(), endpoint_(),
      host_name_(), name_text_(), name_(), own_state_(),
      breaker_(own_state_, ngx_worker), is_shared_(false), is_wanted_(true),
      lanes_(nullptr)
{
    size_t size = copy_text(host, host_);

    endpoint_ = {{size, bytes(host_)}, port};

    u_char *end =
        ngx_snprintf(name_text_, sizeof(name_text_), "%V at %V:%d",
                     &settings.name, &endpoint_.host, static_cast<int>(port));

    name_ = str(view(name_text_, end));
}

ClusterNode *ClusterNode::create(std::string_view host, in_port_t port,
                                 const RedisSettings &settings,
                                 SharedBreakers &breakers,
                                 StoreMetrics &metrics,
                                 RedisRoutes &routes) noexcept
{
    auto *node = new (std::nothrow) ClusterNode(host, port, settings, breakers);

    if (node == nullptr || !node->add_lanes(metrics, routes)) {
        delete node;
        return nullptr;
    }

    BreakerState *shared = node->shared_breaker();

    if (shared != nullptr) {
        node->is_shared_ = true;
        node->breaker_.move_to(*shared);
    }

    return node;
}

bool ClusterNode::add_lanes(StoreMetrics &metrics, RedisRoutes &routes) noexcept
{
    lanes_ = new (std::nothrow) Lane *[settings_.connections]();

    for (ngx_uint_t i = 0; lanes_ != nullptr && i < settings_.connections; i++)
    {
        lanes_[i] = new (std::nothrow) Lane(*this, metrics, routes);

        if (lanes_[i] == nullptr) {
            return false;
        }
    }

    return lanes_ != nullptr;
}

ClusterNode::~ClusterNode()
{
    for (ngx_uint_t i = 0; lanes_ != nullptr && i < settings_.connections; i++)
    {
        delete lanes_[i];
    }

    delete[] lanes_;
}

void ClusterNode::open() noexcept
{
    for (ngx_uint_t i = 0; i < settings_.connections; i++) {
        lanes_[i]->channel.open();
    }
}

void ClusterNode::renew_logins() noexcept
{
    for (ngx_uint_t i = 0; i < settings_.connections; i++) {
        lanes_[i]->channel.renew_login();
    }
}

bool ClusterNode::is_called(std::string_view host,
                            in_port_t port) const noexcept
{
    return endpoint_.port == port
           && (is_same_word(host, host_) || is_same_word(host, host_name_));
}

/* nginx's resolver has put the name in lower case, if it is one. */
bool ClusterNode::is_seed() const noexcept
{
    return std::any_of(settings_.endpoints,
                       settings_.endpoints + settings_.endpoint_count,
                       [this](const RedisEndpoint &seed) {
                           return seed.port == endpoint_.port
                                  && is_same_word(view(seed.host), host_);
                       });
}

void ClusterNode::enter_map(std::string_view host_name) noexcept
{
    is_wanted_ = true;
    copy_text(host_name, host_name_);
}

void ClusterNode::leave_map() noexcept
{
    is_wanted_ = false;
    host_name_[0] = '\0';
}

RedisChannel &ClusterNode::channel_for(unsigned slot) noexcept
{
    return lanes_[slot % settings_.connections]->channel;
}

bool ClusterNode::has(const RedisChannel &channel) const noexcept
{
    return std::any_of(
        lanes_, lanes_ + settings_.connections,
        [&](const Lane *lane) { return &lane->channel == &channel; });
}

bool ClusterNode::is_idle() const noexcept
{
    return std::all_of(
        lanes_, lanes_ + settings_.connections,
        [](const Lane *lane) { return lane->channel.is_idle(); });
}

/* nullptr: more servers than there are places for. */
BreakerState *ClusterNode::shared_breaker() noexcept
{
    return breakers_.of(view(name_), static_cast<int64_t>(ngx_current_msec));
}

/* A worker that was held up for very long finds its place given away. */
void ClusterNode::keep_breaker() noexcept
{
    if (!is_shared_) {
        return;
    }

    BreakerState *shared = shared_breaker();

    is_shared_ = shared != nullptr;

    breaker_.move_to(is_shared_ ? *shared : own_state_);
}

/* ---- all of them ---- */

ClusterNode *ClusterNodes::add(std::string_view host, in_port_t port) noexcept
{
    ClusterNode *node = ClusterNode::create(host, port, settings_, breakers_,
                                            metrics_, routes_);

    if (node != nullptr) {
        node->next = first_;
        first_ = node;
        node->open();
    }

    return node;
}

void ClusterNodes::clear() noexcept
{
    ClusterNode *nodes = first_;

    first_ = nullptr;

    while (nodes != nullptr) {
        ClusterNode *next = nodes->next;

        delete nodes;
        nodes = next;
    }
}

ClusterNode *ClusterNodes::find(const ClusterAddress &address,
                                const ClusterNode &who_says_so) const noexcept
{
    std::string_view host =
        address.host.empty() ? who_says_so.host() : address.host;

    for (ClusterNode *node = first_; node != nullptr; node = node->next) {
        if (node->is_called(host, address.port)) {
            return node;
        }
    }

    return nullptr;
}

ClusterNode *ClusterNodes::find_or_add(const ClusterAddress &address,
                                       const ClusterNode &who_says_so) noexcept
{
    ClusterNode *found = find(address, who_says_so);

    if (found != nullptr) {
        return found;
    }

    std::string_view host =
        address.host.empty() ? who_says_so.host() : address.host;

    /* without a resolver it is found in CLUSTER NODES, which has numbers */
    bool can_be_found =
        is_numeric_address(host)
        || (settings_.resolver != nullptr && host.size() <= kMaxHostName);

    return can_be_found ? add(host, address.port) : nullptr;
}

ClusterNode *ClusterNodes::of(const RedisChannel &channel) const noexcept
{
    for (ClusterNode *node = first_; node != nullptr; node = node->next) {
        if (node->has(channel)) {
            return node;
        }
    }

    return nullptr;
}

ClusterNode *ClusterNodes::any() noexcept
{
    ClusterNode *usable = nullptr;

    for (ClusterNode *node = first_; node != nullptr; node = node->next) {
        RedisChannel &channel = node->first_channel();

        if (!channel.is_usable()) {
            continue;
        }

        if (channel.connection().is_up()) {
            return node;
        }

        usable = usable != nullptr ? usable : node;
    }

    return usable != nullptr ? usable : first_;
}

/*
 * Each server in turn: one of them may be behind the times. Those that are not
 * in the map, replicas or servers that have left, are asked only if there is
 * nobody else.
 */
ClusterNode *ClusterNodes::next_to_ask() noexcept
{
    ClusterNode **found = nullptr;

    for (ClusterNode **link = &first_; *link != nullptr; link = &(*link)->next)
    {
        RedisChannel &channel = (*link)->first_channel();

        if (channel.connection().is_up() && !channel.is_away()
            && (found == nullptr
                || ((*link)->is_wanted() && !(*found)->is_wanted())))
        {
            found = link;
        }
    }

    if (found == nullptr) {
        return nullptr;
    }

    /* the next one's turn is before its next */
    ClusterNode *node = *found;

    *found = node->next;
    node->next = nullptr;

    ClusterNode **end = &first_;

    while (*end != nullptr) {
        end = &(*end)->next;
    }

    *end = node;

    return node;
}

bool ClusterNodes::is_complete() const noexcept
{
    for (ClusterNode *node = first_; node != nullptr; node = node->next) {
        if (node->is_wanted() && node->first_channel().is_away()) {
            return false;
        }
    }

    return true;
}

ClusterNode *ClusterNodes::take_unused(const ClusterNode *except) noexcept
{
    for (ClusterNode **link = &first_; *link != nullptr; link = &(*link)->next)
    {
        ClusterNode *node = *link;

        if (node != except && !node->is_wanted() && !node->is_seed()
            && node->is_idle()) {
            *link = node->next;
            return node;
        }
    }

    return nullptr;
}

}  // namespace sl
