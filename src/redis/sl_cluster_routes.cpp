#include "redis/sl_cluster_routes.h"

#include <new>
#include <optional>

#include "base/pure/sl_words.h"

namespace sl {

namespace {

/* A call that has been sent on so often goes in circles. */
constexpr unsigned kMaxRedirects = 5;

/* Who has what is asked for no more often than this, and no less often. While
 * a server is away others may be about to take its place. */
constexpr ngx_msec_t kRefreshEveryMs = 500;
constexpr ngx_msec_t kRefreshAtLeastMs = 10000;
constexpr ngx_msec_t kRefreshWhileDownMs = 1000;

/* Who has not said it by then, and by twice the timeout, hangs. */
constexpr ngx_msec_t kMapTimeoutMs = 1000;

/* A slot on its way to another server takes a moment. */
constexpr ngx_msec_t kTryAgainMs = 10;

/* A server that has left its cluster knows of nobody who has any. */
bool has_slots(std::string_view map)
{
    ClusterPrimary primary;
    unsigned first;
    unsigned last;

    while (next_primary(&map, &primary)) {
        if (next_slots(&primary.slots, &first, &last)) {
            return true;
        }
    }

    return false;
}

}  // namespace

struct ClusterRoutes::Node {
    char host[256];
    RedisEndpoint endpoint;

    /* Which others may call it by; empty: none. */
    char host_name[256];

    /* For the log. */
    u_char name_text[512];
    ngx_str_t name;

    FixedLocator locator;
    RedisChannel **channels;

    /* Shared with other workers; or its own, if there is no place for it. */
    BreakerState *breaker;
    BreakerState own_breaker;

    /* What all of this worker's channels know of it. */
    std::optional<WorkerBreaker> worker_breaker;

    /* In the last map, or one to begin with. */
    bool is_wanted;

    /* A number in braces is in one of its slots. */
    bool has_probe_key;
    RedisKey probe_key;

    Node *next;

    explicit Node(const RedisSettings &settings) noexcept
        : host(), endpoint(), host_name(), name_text(), name(),
          locator(settings, &endpoint, 1), channels(nullptr),
          breaker(&own_breaker), own_breaker(), is_wanted(true),
          has_probe_key(false), probe_key(), next(nullptr)
    {}
};

ClusterRoutes::ClusterRoutes(const RedisSettings &settings,
                             SharedBreakers &breakers,
                             StoreMetrics &metrics) noexcept
    : settings_(settings), breakers_(breakers), metrics_(metrics),
      nodes_(nullptr), owners_(), refresh_(), refreshed_at_(0), map_command_(),
      waiting_timer_()
{
    refresh_.cancelable = 1;
    refresh_.handler = on_refresh;
    refresh_.data = this;
    refresh_.log = ngx_cycle->log;

    map_command_.on_reply = on_map;
    map_command_.routes = this;

    waiting_timer_.handler = on_waiting;
    waiting_timer_.data = this;
    waiting_timer_.log = ngx_cycle->log;
}

ClusterRoutes::~ClusterRoutes()
{
    stop();
}

void ClusterRoutes::start() noexcept
{
    for (ngx_uint_t i = 0; i < settings_.endpoint_count; i++) {
        const RedisEndpoint &seed = settings_.endpoints[i];

        add_node(view(seed.host), seed.port);
    }

    ngx_add_timer(&refresh_, kRefreshAtLeastMs);
}

void ClusterRoutes::stop() noexcept
{
    for (ngx_event_t *timer : {&refresh_, &waiting_timer_}) {
        if (timer->timer_set) {
            ngx_del_timer(timer);
        }
    }

    /* calls that end now must not find servers to go to */
    Node *nodes = nodes_;

    nodes_ = nullptr;
    ngx_memzero(owners_, sizeof(owners_));

    while (!waiting_.is_empty()) {
        waiting_.pop()->reply(Answer::none(StoreError::kUnavailable));
    }

    while (nodes != nullptr) {
        Node *next = nodes->next;

        delete_node(nodes);
        nodes = next;
    }
}

/* ---- servers ---- */

ClusterRoutes::Node *ClusterRoutes::add_node(std::string_view host,
                                             in_port_t port) noexcept
{
    auto *node = new (std::nothrow) Node(settings_);

    if (node == nullptr) {
        return nullptr;
    }

    size_t size = ngx_min(host.size(), sizeof(node->host) - 1);

    ngx_memcpy(node->host, host.data(), size);
    node->host[size] = '\0';
    node->endpoint = {{size, reinterpret_cast<u_char *>(node->host)}, port};

    node->name.data = node->name_text;
    node->name.len = ngx_snprintf(node->name_text, sizeof(node->name_text),
                                  "%V at %V:%d", &settings_.name,
                                  &node->endpoint.host, static_cast<int>(port))
                     - node->name_text;

    node->channels = new (std::nothrow) RedisChannel *[settings_.connections]();

    if (node->channels == nullptr) {
        delete node;
        return nullptr;
    }

    BreakerState *shared = breaker_of(*node);

    node->breaker = shared != nullptr ? shared : &node->own_breaker;
    node->worker_breaker.emplace(*node->breaker, ngx_worker);

    for (ngx_uint_t i = 0; i < settings_.connections; i++) {
        node->channels[i] = new (std::nothrow)
            RedisChannel(settings_, node->name, node->locator,
                         *node->worker_breaker, metrics_, *this);

        if (node->channels[i] == nullptr) {
            delete_node(node);
            return nullptr;
        }
    }

    node->next = nodes_;
    nodes_ = node;

    for (ngx_uint_t i = 0; i < settings_.connections; i++) {
        node->channels[i]->open();
    }

    return node;
}

/* nullptr: there are too many servers. */
BreakerState *ClusterRoutes::breaker_of(const Node &node) noexcept
{
    return breakers_.of(view(node.name),
                        static_cast<int64_t>(ngx_current_msec));
}

void ClusterRoutes::keep_breakers() noexcept
{
    for (Node *node = nodes_; node != nullptr; node = node->next) {
        if (node->breaker != &node->own_breaker) {
            breaker_of(*node);
        }
    }
}

void ClusterRoutes::delete_node(Node *node) noexcept
{
    if (map_command_.node == node) {
        map_command_.node = nullptr;
    }

    for (ngx_uint_t i = 0; i < settings_.connections; i++) {
        delete node->channels[i];
    }

    delete[] node->channels;
    delete node;
}

ClusterRoutes::Node *ClusterRoutes::find_node(std::string_view host,
                                              in_port_t port) const noexcept
{
    for (Node *node = nodes_; node != nullptr; node = node->next) {
        if (node->endpoint.port == port
            && (is_same_word(host, node->host)
                || is_same_word(host, node->host_name)))
        {
            return node;
        }
    }

    return nullptr;
}

/* nullptr: there is no such server, or no memory for it. */
ClusterRoutes::Node *ClusterRoutes::find_or_add(
    const ClusterAddress &address, const Node &who_says_so) noexcept
{
    std::string_view host = address.host.empty()
                                ? std::string_view(who_says_so.host)
                                : address.host;
    Node *found = find_node(host, address.port);

    if (found != nullptr) {
        return found;
    }

    /* without a resolver it is found in CLUSTER NODES, which has numbers */
    bool can_be_found =
        is_numeric_address(host)
        || (settings_.resolver != nullptr && host.size() <= kMaxHostName);

    return can_be_found ? add_node(host, address.port) : nullptr;
}

ClusterRoutes::Node *ClusterRoutes::node_of(
    const RedisChannel &channel) const noexcept
{
    for (Node *node = nodes_; node != nullptr; node = node->next) {
        for (ngx_uint_t i = 0; i < settings_.connections; i++) {
            if (node->channels[i] == &channel) {
                return node;
            }
        }
    }

    return nullptr;
}

/* One that answers, if there is one; or one that may yet. */
ClusterRoutes::Node *ClusterRoutes::any_node() noexcept
{
    Node *found = nodes_;
    bool is_found = false;

    for (Node *node = nodes_; node != nullptr; node = node->next) {
        if (!node->channels[0]->is_usable()) {
            continue;
        }

        if (node->channels[0]->connection().is_up()) {
            return node;
        }

        found = is_found ? found : node;
        is_found = true;
    }

    return found;
}

/*
 * Each in turn: one of them may be behind the times. Those that are not in the
 * map, replicas or servers that have left, only if there is nobody else.
 */
ClusterRoutes::Node *ClusterRoutes::next_to_ask() noexcept
{
    Node **found = nullptr;

    for (Node **link = &nodes_; *link != nullptr; link = &(*link)->next) {
        RedisChannel &channel = *(*link)->channels[0];

        if (channel.connection().is_up() && !channel.is_away()
            && (found == nullptr
                || ((*link)->is_wanted && !(*found)->is_wanted)))
        {
            found = link;
        }
    }

    if (found == nullptr) {
        return nullptr;
    }

    Node *node = *found;

    *found = node->next;
    node->next = nullptr;

    Node **end = &nodes_;

    while (*end != nullptr) {
        end = &(*end)->next;
    }

    *end = node;

    return node;
}

/* All that are in the map can be asked. */
bool ClusterRoutes::is_complete() const noexcept
{
    for (Node *node = nodes_; node != nullptr; node = node->next) {
        if (node->is_wanted && node->channels[0]->is_away()) {
            return false;
        }
    }

    return true;
}

RedisChannel *ClusterRoutes::channel_for(unsigned slot) noexcept
{
    Node *node = owners_[slot] != nullptr ? owners_[slot] : any_node();

    if (node == nullptr) {
        return nullptr;
    }

    RedisChannel *channel = node->channels[slot % settings_.connections];

    /* another one may have taken its place, and other workers know it first */
    if (channel->is_away()) {
        refresh_soon();
    }

    return channel;
}

void ClusterRoutes::channel_up(RedisChannel &) noexcept
{
    refresh_soon();
}

void ClusterRoutes::channel_down(RedisChannel &) noexcept
{
    refresh_soon();
}

bool ClusterRoutes::probe_key(const RedisChannel &channel,
                              RedisKey *key) const noexcept
{
    const Node *node = node_of(channel);

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

    if (nodes_ == nullptr) {
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
    Node *node = node_of(from);
    Node *to = node != nullptr ? find_or_add(where.to, *node) : nullptr;

    if (!where.is_ask) {
        owners_[where.slot] = to;
        refresh_soon();
    }

    if (to == nullptr) {
        return call;
    }

    RedisChannel &channel = *to->channels[call->slot() % settings_.connections];

    return channel.adopt(std::move(call), where.is_ask);
}

/*
 * Some keys of the call have moved, and others have not yet. Given back if
 * there is no time left for that and for a reply: so no call's time ends while
 * it waits here, and servers that do reply are not blamed for it.
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
    waiting_.push(std::move(call));

    if (!waiting_timer_.timer_set) {
        ngx_add_timer(&waiting_timer_, kTryAgainMs);
    }

    return nullptr;
}

void ClusterRoutes::on_waiting(ngx_event_t *ev) noexcept
{
    static_cast<ClusterRoutes *>(ev->data)->send_waiting();
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
            call->reply(Answer::none(StoreError::kUnavailable));
        }
    }
}

/* ---- who has what ---- */

void ClusterRoutes::refresh_soon() noexcept
{
    ngx_msec_t since = ngx_current_msec - refreshed_at_;
    ngx_msec_t delay = refreshed_at_ == 0 || since >= kRefreshEveryMs
                           ? 1
                           : kRefreshEveryMs - since;

    /* the one that is due anyway may be due later */
    if (refresh_.timer_set) {
        if (refresh_.timer.key - ngx_current_msec <= delay) {
            return;
        }

        ngx_del_timer(&refresh_);
    }

    ngx_add_timer(&refresh_, delay);
}

void ClusterRoutes::on_refresh(ngx_event_t *ev) noexcept
{
    auto *routes = static_cast<ClusterRoutes *>(ev->data);

    ngx_add_timer(ev, routes->is_complete() ? kRefreshAtLeastMs
                                            : kRefreshWhileDownMs);

    routes->remove_unused();
    routes->keep_breakers();
    routes->refresh();
}

void ClusterRoutes::refresh() noexcept
{
    if (map_command_.node != nullptr) {
        give_up_waiting();
        return;
    }

    refreshed_at_ = ngx_current_msec;

    Node *node = next_to_ask();

    if (node != nullptr
        && node->channels[0]->connection().send(&map_command_,
                                                {"CLUSTER", "NODES"}))
    {
        map_command_.node = node;
    }
}

/* A server without clients could hang for ever, and nobody would notice. */
void ClusterRoutes::give_up_waiting() noexcept
{
    if (ngx_current_msec - refreshed_at_
        < ngx_max(2 * settings_.timeout, kMapTimeoutMs))
    {
        return;
    }

    RedisConnection &connection = map_command_.node->channels[0]->connection();

    connection.read_waiting_input();

    if (map_command_.node != nullptr) {
        connection.fail(Trouble::kUnreachable, "it does not reply");
    }
}

void ClusterRoutes::on_map(RedisCommand *command, redisReply *reply) noexcept
{
    auto *map = static_cast<MapCommand *>(command);
    ClusterRoutes *routes = map->routes;
    Node *node = map->node;

    map->node = nullptr;

    if (reply != nullptr && reply->type != REDIS_REPLY_STRING) {
        return;
    }

    if (node != nullptr && reply != nullptr && has_slots(text_of(reply))) {
        routes->learn(text_of(reply), *node);
    } else {
        routes->refresh_soon();
    }
}

void ClusterRoutes::learn(std::string_view map,
                          const Node &who_says_so) noexcept
{
    ClusterPrimary primary;

    for (Node *node = nodes_; node != nullptr; node = node->next) {
        node->is_wanted = false;
        node->host_name[0] = '\0';
    }

    while (next_primary(&map, &primary)) {
        /* it may be known by its name, from a redirection or to begin with */
        Node *by_name =
            primary.host_name.empty()
                ? nullptr
                : find_node(primary.host_name, primary.address.port);
        Node *node = by_name != nullptr
                         ? by_name
                         : find_or_add(primary.address, who_says_so);
        unsigned first;
        unsigned last;

        if (node == nullptr) {
            continue;
        }

        node->is_wanted = true;

        size_t size =
            ngx_min(primary.host_name.size(), sizeof(node->host_name) - 1);

        ngx_memcpy(node->host_name, primary.host_name.data(), size);
        node->host_name[size] = '\0';

        bool has_some = false;

        while (next_slots(&primary.slots, &first, &last)) {
            has_some = true;

            for (unsigned slot = first; slot <= last; slot++) {
                owners_[slot] = node;
            }
        }

        if (has_some) {
            choose_probe_key(node);
        } else {
            node->has_probe_key = false;
        }
    }
}

/*
 * A number whose slot is one of the server's: soon found if it has many, and
 * good for as long as it has that slot.
 */
void ClusterRoutes::choose_probe_key(Node *node) noexcept
{
    constexpr unsigned kMostTries = 20000;

    node->has_probe_key =
        node->has_probe_key
        && owners_[cluster_slot(node->probe_key.view())] == node;

    for (unsigned i = 0; i < kMostTries && !node->has_probe_key; i++) {
        char text[NGX_INT_T_LEN];
        size_t size = ngx_sprintf(reinterpret_cast<u_char *>(text), "probe%ui",
                                  static_cast<ngx_uint_t>(i))
                      - reinterpret_cast<u_char *>(text);

        node->probe_key = redis_key(view(settings_.prefix), "", {text, size},
                                    KeyStyle::kInBraces);
        node->has_probe_key =
            owners_[cluster_slot(node->probe_key.view())] == node;
    }
}

/*
 * Servers that have left, unless they are some to begin with. Not from inside
 * a callback of one of them.
 */
void ClusterRoutes::remove_unused() noexcept
{
    /* calls that wait know the channel they came from */
    if (!waiting_.is_empty()) {
        return;
    }

    for (Node **link = &nodes_; *link != nullptr;) {
        Node *node = *link;
        bool is_idle = true;

        for (ngx_uint_t i = 0; i < settings_.connections; i++) {
            is_idle = is_idle && node->channels[i]->is_idle();
        }

        if (node->is_wanted || is_seed(*node) || !is_idle
            || map_command_.node == node) {
            link = &node->next;
            continue;
        }

        *link = node->next;

        for (Node *&owner : owners_) {
            if (owner == node) {
                owner = nullptr;
            }
        }

        Breaker(*node->breaker).forget();
        delete_node(node);
    }
}

bool ClusterRoutes::is_seed(const Node &node) const noexcept
{
    for (ngx_uint_t i = 0; i < settings_.endpoint_count; i++) {
        if (settings_.endpoints[i].port == node.endpoint.port
            && view(settings_.endpoints[i].host) == node.host)
        {
            return true;
        }
    }

    return false;
}

}  // namespace sl
