/* What the servers of a Redis Cluster say about who has which slots. */

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sl {

/* An address as servers write it: host:port, without brackets around an IPv6
 * address. */
struct ClusterAddress {
    /* Empty: the host of the server which says so. */
    std::string_view host;
    uint16_t port;
};

/* False if the text is no address. */
bool parse_cluster_address(std::string_view text, ClusterAddress *to) noexcept;

/* What "MOVED 3999 127.0.0.1:6381" says, or the same with ASK. */
struct Redirection {
    bool is_ask;
    unsigned slot;
    ClusterAddress to;
};

/* False if the error is neither. */
bool parse_redirection(std::string_view error, Redirection *to) noexcept;

/* A primary, in the answer to CLUSTER NODES. */
struct ClusterPrimary {
    ClusterAddress address;

    /* The name that it announces; empty: none. */
    std::string_view host_name;

    /* The ranges of slots that it has, to be read with next_slots(). */
    std::string_view slots;
};

/* Takes the next primary from `text`. False if there is none left. */
bool next_primary(std::string_view *text, ClusterPrimary *to) noexcept;

/* Takes the next range. False if there is none left. */
bool next_slots(std::string_view *slots, unsigned *first,
                unsigned *last) noexcept;

}  // namespace sl
