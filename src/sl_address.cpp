#include "sl_address.h"

namespace sl {

namespace {

constexpr ngx_uint_t kAddressBytes = 16;
constexpr ngx_uint_t kIpv4At = 12; /* in an IPv4-mapped address */

}  // namespace

size_t write_network(const sockaddr *address, socklen_t size, ngx_uint_t prefix,
                     u_char *text) noexcept
{
#if (NGX_HAVE_INET6)
    if (address->sa_family == AF_INET6) {
        auto *in6 = reinterpret_cast<const sockaddr_in6 *>(address);
        u_char bytes[kAddressBytes];

        ngx_memcpy(bytes, &in6->sin6_addr, sizeof(bytes));

        if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
            return ngx_inet_ntop(AF_INET, bytes + kIpv4At, text,
                                 NGX_SOCKADDR_STRLEN);
        }

        for (ngx_uint_t i = 0; i < kAddressBytes; i++) {
            ngx_uint_t kept = prefix > i * 8 ? ngx_min(prefix - i * 8, 8) : 0;

            bytes[i] &= static_cast<u_char>(0xff00 >> kept);
        }

        return ngx_inet_ntop(AF_INET6, bytes, text, NGX_SOCKADDR_STRLEN);
    }
#endif

    return ngx_sock_ntop(const_cast<sockaddr *>(address), size, text,
                         NGX_SOCKADDR_STRLEN, 0);
}

}  // namespace sl
