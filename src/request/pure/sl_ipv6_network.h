/* IPv6 addresses, cut to the network that they are in. */

#pragma once

#include <cstddef>

#include "request/pure/sl_embedded_ipv4.h"

namespace sl {

/* Makes all but the first `prefix` bits zero. */
void cut_to_network(uint8_t (&ipv6)[kIpv6Bytes], size_t prefix) noexcept;

}  // namespace sl
