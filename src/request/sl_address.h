/* Client addresses as what is usually one client. */

#pragma once

#include "base/sl_nginx.h"

namespace sl {

/*
 * Writes an address: IPv6 with all but its first `prefix` bits zero, because a
 * client has as many addresses as it likes behind them; IPv4 as IPv4, also if
 * it is within an IPv6 address. `text` has room for NGX_SOCKADDR_STRLEN bytes.
 * Returns the size.
 */
size_t write_network(const sockaddr *address, socklen_t size, ngx_uint_t prefix,
                     u_char *text) noexcept;

}  // namespace sl
