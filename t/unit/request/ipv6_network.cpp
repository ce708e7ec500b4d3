/* IPv6 addresses, cut to networks of any size. */

#include "request/pure/sl_ipv6_network.h"

#include <arpa/inet.h>

#include <string>

#include "unit.h"

namespace {

std::string network_of(const char *ipv6, size_t prefix)
{
    uint8_t bytes[sl::kIpv6Bytes];
    char text[INET6_ADDRSTRLEN];

    assert_int_equal(inet_pton(AF_INET6, ipv6, bytes), 1);
    sl::cut_to_network(bytes, prefix);

    return inet_ntop(AF_INET6, bytes, text, sizeof(text));
}

void a_network_ends_at_any_bit(void **)
{
    constexpr const char *kAddress = "2001:db8:aaaa:bbff:ffff:ffff:ffff:ffff";

    assert_text_equal(network_of(kAddress, 64), "2001:db8:aaaa:bbff::");
    assert_text_equal(network_of(kAddress, 56), "2001:db8:aaaa:bb00::");
    assert_text_equal(network_of(kAddress, 57), "2001:db8:aaaa:bb80::");
    assert_text_equal(network_of(kAddress, 63), "2001:db8:aaaa:bbfe::");
    assert_text_equal(network_of(kAddress, 1), "::");
    assert_text_equal(network_of("ffff::1", 1), "8000::");
    assert_text_equal(network_of(kAddress, 127),
                      "2001:db8:aaaa:bbff:ffff:ffff:ffff:fffe");
}

void the_longest_prefix_keeps_all_and_the_shortest_nothing(void **)
{
    assert_text_equal(network_of("2001:db8::1", 128), "2001:db8::1");
    assert_text_equal(network_of("2001:db8::1", 200), "2001:db8::1");
    assert_text_equal(network_of("2001:db8::1", 0), "::");
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_network_ends_at_any_bit),
        cmocka_unit_test(the_longest_prefix_keeps_all_and_the_shortest_nothing),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
