#include "request/pure/sl_embedded_ipv4.h"

#include <cstring>

namespace sl {

namespace {

constexpr size_t kPrefixBytes = 12;

constexpr uint8_t kPrefixes[][kPrefixBytes] = {
    {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff},
    {0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0},
    {0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0},
};

}  // namespace

const uint8_t *embedded_ipv4(const uint8_t ipv6[kIpv6Bytes]) noexcept
{
    for (const auto &prefix : kPrefixes) {
        if (std::memcmp(ipv6, prefix, kPrefixBytes) == 0) {
            return ipv6 + kPrefixBytes;
        }
    }

    return nullptr;
}

}  // namespace sl
