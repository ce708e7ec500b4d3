#include "request/sl_address.h"

#include "request/pure/sl_embedded_ipv4.h"
#include "request/pure/sl_ipv6_network.h"

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

        cut_to_network(bytes, prefix);

        return ngx_inet_ntop(AF_INET6, bytes, text, NGX_SOCKADDR_STRLEN);
    }
#endif

    return ngx_sock_ntop(const_cast<sockaddr *>(address), size, text,
                         NGX_SOCKADDR_STRLEN, 0);
}

}  // namespace sl
