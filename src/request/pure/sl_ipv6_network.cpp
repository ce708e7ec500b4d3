#include "request/pure/sl_ipv6_network.h"

#include <algorithm>

namespace sl {

void cut_to_network(uint8_t (&ipv6)[kIpv6Bytes], size_t prefix) noexcept
{
    for (uint8_t &byte : ipv6) {
        size_t kept = std::min<size_t>(prefix, 8);

        byte &= static_cast<uint8_t>(0xff00 >> kept);
        prefix -= kept;
    }
}

}  // namespace sl
