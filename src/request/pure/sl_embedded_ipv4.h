/*
 * IPv4 addresses inside IPv6 addresses: whoever comes from one of these comes
 * from that IPv4 address.
 */

#pragma once

#include <cstddef>
#include <cstdint>

namespace sl {

constexpr size_t kIpv6Bytes = 16;

/*
 * The four bytes of the IPv4 address within `ipv6`, or nullptr if there is
 * none. It is of these forms, in all of which the last 32 bits are IPv4's:
 *
 *   ::ffff:0:0/96    IPv4-mapped: an IPv4 client of an IPv6 socket (RFC 4291)
 *   ::ffff:0:0:0/96  IPv4-translated, by stateless translators (RFC 2765)
 *   64:ff9b::/96     NAT64 and SIIT with the well-known prefix (RFC 6052)
 *
 * Translators may use other prefixes. Where those have the IPv4 address, only
 * their operators know, also within 64:ff9b:1::/48 (RFC 8215).
 */
const uint8_t *embedded_ipv4(const uint8_t ipv6[kIpv6Bytes]) noexcept;

}  // namespace sl
