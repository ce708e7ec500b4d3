#include "request/sl_address.h"

#include "request/pure/sl_embedded_ipv4.h"

namespace sl {

size_t write_network(const sockaddr *address, socklen_t size, ngx_uint_t prefix,
                     u_char *text) noexcept
{
#if (NGX_HAVE_INET6)
    if (address->sa_family == AF_INET6) {
        auto *in6 = reinterpret_cast<const sockaddr_in6 *>(address);
        u_char bytes[kIpv6Bytes];

        ngx_memcpy(bytes, &in6->sin6_addr, sizeof(bytes));

        if (const u_char *ipv4 = embedded_ipv4(bytes)) {
            return ngx_inet_ntop(AF_INET, const_cast<u_char *>(ipv4), text,
                                 NGX_SOCKADDR_STRLEN);
        }

        for (ngx_uint_t i = 0; i < kIpv6Bytes; i++) {
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
