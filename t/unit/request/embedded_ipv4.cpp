/* Which IPv6 addresses stand for an IPv4 address, and for which. */

#include "request/pure/sl_embedded_ipv4.h"

#include <arpa/inet.h>

#include <string>

#include "unit.h"

namespace {

/* As text; "" if there is none. */
std::string ipv4_in(const char *ipv6)
{
    uint8_t bytes[sl::kIpv6Bytes];
    char text[INET_ADDRSTRLEN];

    assert_int_equal(inet_pton(AF_INET6, ipv6, bytes), 1);

    const uint8_t *ipv4 = sl::embedded_ipv4(bytes);

    return ipv4 == nullptr ? "" : inet_ntop(AF_INET, ipv4, text, sizeof(text));
}

void assert_ipv4_in(const char *ipv6, const char *ipv4)
{
    assert_string_equal(ipv4_in(ipv6).c_str(), ipv4);
}

void mapped_addresses_are_ipv4(void **)
{
    assert_ipv4_in("::ffff:192.0.2.7", "192.0.2.7");
    assert_ipv4_in("::ffff:0.0.0.0", "0.0.0.0");
    assert_ipv4_in("::ffff:255.255.255.255", "255.255.255.255");
}

void addresses_of_stateless_translators_are_ipv4(void **)
{
    assert_ipv4_in("::ffff:0:192.0.2.7", "192.0.2.7");
}

void addresses_with_the_well_known_nat64_prefix_are_ipv4(void **)
{
    assert_ipv4_in("64:ff9b::192.0.2.7", "192.0.2.7");
    assert_ipv4_in("64:ff9b::c000:208", "192.0.2.8");
}

void all_96_bits_of_the_prefix_matter(void **)
{
    for (const char *prefix : {"::ffff:0:0", "::ffff:0:0:0", "64:ff9b::"}) {
        for (size_t bit = 0; bit < 96; bit++) {
            uint8_t bytes[sl::kIpv6Bytes];

            assert_int_equal(inet_pton(AF_INET6, prefix, bytes), 1);
            bytes[bit / 8] ^= static_cast<uint8_t>(0x80 >> bit % 8);

            assert_null(sl::embedded_ipv4(bytes));
        }
    }
}

void other_addresses_are_ipv6(void **)
{
    assert_ipv4_in("::", "");
    assert_ipv4_in("::1", "");
    assert_ipv4_in("::192.0.2.7", "");
    assert_ipv4_in("2001:db8::192.0.2.7", "");
    assert_ipv4_in("2002:c000:207::1", "");
}

void prefixes_for_local_use_are_ipv6_whatever_their_layout(void **)
{
    assert_ipv4_in("64:ff9b:1::192.0.2.7", "");
    assert_ipv4_in("64:ff9b:1:c000:2:700::", "");
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(mapped_addresses_are_ipv4),
        cmocka_unit_test(addresses_of_stateless_translators_are_ipv4),
        cmocka_unit_test(addresses_with_the_well_known_nat64_prefix_are_ipv4),
        cmocka_unit_test(all_96_bits_of_the_prefix_matter),
        cmocka_unit_test(other_addresses_are_ipv6),
        cmocka_unit_test(prefixes_for_local_use_are_ipv6_whatever_their_layout),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
