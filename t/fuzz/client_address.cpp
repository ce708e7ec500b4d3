/* IPv6 addresses, compared with arithmetic on numbers of 128 bits. */

#include "fuzz.h"
#include "request/pure/sl_embedded_ipv4.h"
#include "request/pure/sl_ipv6_network.h"

namespace {

__extension__ typedef unsigned __int128 Number;

Number number_of(const uint8_t (&ipv6)[sl::kIpv6Bytes])
{
    Number number = 0;

    for (uint8_t byte : ipv6) {
        number = number << 8 | byte;
    }

    return number;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Input input(data, size);
    size_t prefix = input.number<uint8_t>() % 129;
    uint8_t ipv6[sl::kIpv6Bytes];

    for (uint8_t &byte : ipv6) {
        byte = input.number<uint8_t>();
    }

    Number address = number_of(ipv6);
    Number front = address >> 32;
    const uint8_t *ipv4 = sl::embedded_ipv4(ipv6);

    check((ipv4 != nullptr)
          == (front == 0xffff || front == 0xffff0000
              || front == Number{0x64ff9b} << 64));
    check(ipv4 == nullptr || ipv4 == ipv6 + 12);

    sl::cut_to_network(ipv6, prefix);

    size_t dropped = 128 - prefix;
    Number expected = dropped == 128 ? 0 : address >> dropped << dropped;

    check(number_of(ipv6) == expected);

    return 0;
}
