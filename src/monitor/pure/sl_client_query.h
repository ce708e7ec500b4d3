/* Whom a request of an operator's is about: ?zone=Z&key=K, or ?zone=Z&overrides
 * for all who have a ban or an override. */

#pragma once

#include <string_view>

#include "monitor/pure/sl_complaint.h"

namespace sl {

struct ClientQuery {
    std::string_view zone;
    std::string_view key;

    /* It is about all; from there on, unless that is empty. */
    bool is_list = false;
    std::string_view cursor;
};

/* Whether the arguments say which zone: then they are such a query. */
bool names_zone(std::string_view arguments) noexcept;

/*
 * Decoded values are written to `room`, which has as many bytes as there are
 * arguments. False, with a complaint that lasts as long as both.
 */
bool read_client_query(std::string_view arguments, char *room,
                       ClientQuery *query, Complaint *complaint) noexcept;

}  // namespace sl
