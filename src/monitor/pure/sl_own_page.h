/*
 * Whether a request to change something comes from a page of this server's, or
 * from a program: a page of somebody else's can make an operator's browser send
 * requests, with the operator's password, and must not be obeyed.
 */

#pragma once

#include <string_view>

namespace sl {

/* Whether this is the Content-Type of JSON, with parameters or not: a browser
 * sends it for no other page without asking first. */
bool is_json_type(std::string_view content_type) noexcept;

/* Whether an Origin header names the server that the Host header does. A page
 * may have come by TLS that ended before this nginx, so that only the host and
 * its port count. */
bool is_own_origin(std::string_view origin, std::string_view host) noexcept;

/*
 * Whether `name`, as it stands in server_name, is or covers `host`, which is in
 * lower case and has no port. "*.example.org" and ".example.org" cover names of
 * that domain. "www.example.*" covers nothing here: anybody can have a domain
 * of which a name begins so. Nor do "" and "_", which servers without a name
 * have.
 */
bool is_name_of(std::string_view name, std::string_view host) noexcept;

/* Whether these are names of hosts, without ports and separated by commas; and
 * whether `host` is one of them. */
bool is_list_of_names(std::string_view list) noexcept;
bool is_listed(std::string_view list, std::string_view host) noexcept;

}  // namespace sl
