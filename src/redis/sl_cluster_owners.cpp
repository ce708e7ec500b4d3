#include "redis/sl_cluster_owners.h"

#include <algorithm>
#include <iterator>

namespace sl {

namespace {

/* The map is asked for no more often than this, and no less often. While a
 * server is away others may be about to take its place. */
constexpr ngx_msec_t kRefreshEveryMs = 500;
constexpr ngx_msec_t kRefreshAtLeastMs = 10000;
constexpr ngx_msec_t kRefreshWhileDownMs = 1000;

/* A server that has not sent its map by then, and by twice the timeout, hangs.
 */
constexpr ngx_msec_t kMapTimeoutMs = 1000;

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

ClusterOwners::ClusterOwners(const RedisSettings &settings,
                             ClusterNodes &nodes) noexcept
    : settings_(settings), nodes_(nodes), owners_(), changes_(0),
      next_refresh_(
          Wakeup::calling<&ClusterOwners::refresh>(this, Wakeup::kCancelable)),
      refreshed_at_(0), map_command_()
{
    map_command_.on_reply = on_map;
    map_command_.owners = this;
}

void ClusterOwners::start() noexcept
{
    next_refresh_.after(kRefreshAtLeastMs);
}

void ClusterOwners::stop() noexcept
{
    next_refresh_.cancel();
    map_command_.node = nullptr;
    std::fill(std::begin(owners_), std::end(owners_), nullptr);
}

void ClusterOwners::moved(unsigned slot, ClusterNode *to) noexcept
{
    give(slot, slot, to);
    refresh_soon();
}

void ClusterOwners::give(unsigned first, unsigned last,
                         ClusterNode *to) noexcept
{
    ClusterNode **const begin = owners_ + first;
    ClusterNode **const end = owners_ + last + 1;

    if (std::any_of(begin, end, [to](ClusterNode *it) { return it != to; })) {
        std::fill(begin, end, to);
        changes_++;
    }
}

unsigned ClusterOwners::next_lowest(unsigned slot) const noexcept
{
    /* most are as the one before them, and found at once */
    auto has_lower = [this](unsigned it) {
        ClusterNode *const *end = owners_ + it;

        return it > 0
               && (end[-1] == *end || std::find(owners_, end, *end) != end);
    };

    while (slot < kClusterSlots && has_lower(slot)) {
        slot++;
    }

    return slot;
}

/* ---- asking ---- */

void ClusterOwners::refresh_soon() noexcept
{
    ngx_msec_t since = ngx_current_msec - refreshed_at_;
    ngx_msec_t delay = refreshed_at_ == 0 || since >= kRefreshEveryMs
                           ? 1
                           : kRefreshEveryMs - since;

    /* the one that is due anyway may be due earlier */
    if (!next_refresh_.is_set()
        || next_refresh_.left() > static_cast<ngx_msec_int_t>(delay))
    {
        next_refresh_.after(delay);
    }
}

void ClusterOwners::refresh() noexcept
{
    next_refresh_.after(nodes_.is_complete() ? kRefreshAtLeastMs
                                             : kRefreshWhileDownMs);

    remove_unused();
    nodes_.for_each([](ClusterNode &node) { node.keep_breaker(); });

    if (map_command_.node != nullptr) {
        give_up_if_silent();
    } else {
        ask();
    }
}

void ClusterOwners::ask() noexcept
{
    refreshed_at_ = ngx_current_msec;

    ClusterNode *node = nodes_.next_to_ask();

    if (node != nullptr
        && node->first_channel().connection().send(&map_command_,
                                                   {"CLUSTER", "NODES"}))
    {
        map_command_.node = node;
    }
}

/* A server without clients could hang for ever, and nobody would notice. */
void ClusterOwners::give_up_if_silent() noexcept
{
    if (ngx_current_msec - refreshed_at_
        < ngx_max(2 * settings_.timeout, kMapTimeoutMs))
    {
        return;
    }

    RedisConnection &connection =
        map_command_.node->first_channel().connection();

    connection.read_waiting_input();

    if (map_command_.node != nullptr) {
        connection.fail(Trouble::kUnreachable, "it does not reply");
    }
}

void ClusterOwners::on_map(RedisCommand *command, redisReply *reply) noexcept
{
    auto *map = static_cast<MapCommand *>(command);
    ClusterOwners *owners = map->owners;
    ClusterNode *node = map->node;

    map->node = nullptr;

    /* an error does not mend itself: the next time is soon enough */
    if (reply != nullptr && reply->type != REDIS_REPLY_STRING) {
        return;
    }

    if (node != nullptr && reply != nullptr && has_slots(text_of(reply))) {
        owners->learn(text_of(reply), *node);
    } else {
        owners->refresh_soon();
    }
}

/* ---- what the answer says ---- */

void ClusterOwners::learn(std::string_view map,
                          const ClusterNode &who_says_so) noexcept
{
    ClusterPrimary primary;

    nodes_.for_each([](ClusterNode &node) { node.leave_map(); });

    while (next_primary(&map, &primary)) {
        ClusterNode *node = node_of(primary, who_says_so);

        if (node != nullptr) {
            node->enter_map(primary.host_name);
            take_slots(node, primary.slots);
        }
    }
}

/*
 * The address tells servers apart; a name may be that of several, as that of a
 * service is. So a server is known by its name only if it was added by it, from
 * a redirection or to begin with, and has not been found to be another one.
 */
ClusterNode *ClusterOwners::node_of(const ClusterPrimary &primary,
                                    const ClusterNode &who_says_so) noexcept
{
    ClusterNode *node = nodes_.find(primary.address, who_says_so);

    if (node == nullptr && !primary.host_name.empty()) {
        node =
            nodes_.find({primary.host_name, primary.address.port}, who_says_so);

        if (node != nullptr && node->is_wanted()) {
            node = nullptr;
        }
    }

    return node != nullptr ? node
                           : nodes_.find_or_add(primary.address, who_says_so);
}

void ClusterOwners::take_slots(ClusterNode *node,
                               std::string_view slots) noexcept
{
    bool has_some = false;
    unsigned first;
    unsigned last;

    while (next_slots(&slots, &first, &last)) {
        has_some = true;
        give(first, last, node);
    }

    if (has_some) {
        choose_probe_key(node);
    } else {
        node->has_probe_key = false;
    }
}

/*
 * A number whose slot is one of the server's: soon found if it has many, and
 * good for as long as it has that slot.
 */
void ClusterOwners::choose_probe_key(ClusterNode *node) noexcept
{
    constexpr unsigned kMostTries = 20000;

    auto is_its_own = [&] {
        return of(cluster_slot(node->probe_key.view())) == node;
    };

    node->has_probe_key = node->has_probe_key && is_its_own();

    for (unsigned i = 0; i < kMostTries && !node->has_probe_key; i++) {
        u_char text[sizeof("probe") + NGX_INT_T_LEN];
        u_char *end = ngx_sprintf(text, "probe%ui", static_cast<ngx_uint_t>(i));

        node->probe_key = redis_key(view(settings_.prefix), "", view(text, end),
                                    KeyStyle::kInBraces);
        node->has_probe_key = is_its_own();
    }
}

/* Servers that have left, unless the configuration names them. */
void ClusterOwners::remove_unused() noexcept
{
    ClusterNode *node;

    while ((node = nodes_.take_unused(map_command_.node)) != nullptr) {
        std::replace(std::begin(owners_), std::end(owners_), node,
                     static_cast<ClusterNode *>(nullptr));

        node->forget_outage();
        delete node;
    }
}

}  // namespace sl
