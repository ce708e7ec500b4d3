/* What a cluster says about itself: addresses, redirections, CLUSTER NODES. */

#include "redis/pure/sl_cluster_map.h"

#include <vector>

#include "unit.h"

namespace {

using sl::ClusterAddress;
using sl::ClusterPrimary;
using sl::Redirection;

void assert_address(std::string_view text, std::string_view host, int port)
{
    ClusterAddress address;

    assert_true(sl::parse_cluster_address(text, &address));
    assert_text_equal(address.host, host);
    assert_int_equal(address.port, port);
}

void an_address_is_split_at_its_last_colon(void **)
{
    assert_address("127.0.0.1:6379", "127.0.0.1", 6379);
    assert_address("::1:6379", "::1", 6379);
    assert_address("2001:db8::7:1", "2001:db8::7", 1);
    assert_address("redis.example:65535", "redis.example", 65535);
}

void a_host_that_is_not_known_is_empty(void **)
{
    assert_address(":6379", "", 6379);
    assert_address("?:6379", "", 6379);
}

void what_is_no_address_is_refused(void **)
{
    ClusterAddress address;

    for (std::string_view text :
         {"", "host", "host:", "host:0", "host:65536", "host:-1", "host:1x",
          "host:99999999999999999999", ":", "a b:1", "a\nb:1", "a\x1b[31m:1",
          "a\"b:1", "??:1"})
    {
        assert_false(sl::parse_cluster_address(text, &address));
    }
}

void a_redirection_says_what_and_where(void **)
{
    Redirection to;

    assert_true(sl::parse_redirection("MOVED 3999 127.0.0.1:6381", &to));
    assert_false(to.is_ask);
    assert_int_equal(to.slot, 3999);
    assert_text_equal(to.to.host, "127.0.0.1");
    assert_int_equal(to.to.port, 6381);

    assert_true(sl::parse_redirection("ASK 16383 ::1:1", &to));
    assert_true(to.is_ask);
    assert_int_equal(to.slot, 16383);
    assert_text_equal(to.to.host, "::1");

    assert_true(sl::parse_redirection("MOVED 0 :7000", &to));
    assert_text_equal(to.to.host, "");
}

void what_is_no_redirection_is_refused(void **)
{
    Redirection to;

    for (std::string_view text :
         {"", "MOVED", "MOVED ", "MOVED 1", "MOVED 1 ", "MOVED 16384 h:1",
          "MOVED -1 h:1", "MOVED x h:1", "MOVED 1 h", "TRYAGAIN",
          "MOVEDX 1 h:1", "ASKING 1 h:1", "moved 1 h:1"})
    {
        assert_false(sl::parse_redirection(text, &to));
    }
}

struct Found {
    std::string host;
    int port;
    std::string name;
    std::vector<std::pair<unsigned, unsigned>> slots;
};

std::vector<Found> primaries(std::string_view text)
{
    std::vector<Found> all;
    ClusterPrimary primary;

    while (sl::next_primary(&text, &primary)) {
        Found found{std::string(primary.address.host),
                    primary.address.port,
                    std::string(primary.host_name),
                    {}};
        unsigned first;
        unsigned last;

        while (sl::next_slots(&primary.slots, &first, &last)) {
            found.slots.emplace_back(first, last);
        }

        all.push_back(found);
    }

    return all;
}

void primaries_and_their_slots_are_found(void **)
{
    std::vector<Found> all = primaries(
        "07c37d 127.0.0.1:30004@31004,h4 slave e7d1ee 0 1426238317239 4 "
        "connected\n"
        "67ed2d 127.0.0.1:30002@31002,h2 master - 0 1426238316232 2 connected "
        "5461-10922\n"
        "292f8b 127.0.0.1:30003@31003 master - 0 1426238318243 3 connected "
        "10923-16383\n"
        "e7d1ee 127.0.0.1:30001@31001,h1 myself,master - 0 0 1 connected 0 "
        "2-5460 [93->-292f8b] [77-<-e7d1ee]\n");

    assert_int_equal(all.size(), 3);

    assert_text_equal(all[0].host, "127.0.0.1");
    assert_int_equal(all[0].port, 30002);
    assert_text_equal(all[0].name, "h2");
    assert_int_equal(all[0].slots.size(), 1);
    assert_int_equal(all[0].slots[0].first, 5461);
    assert_int_equal(all[0].slots[0].second, 10922);

    assert_text_equal(all[1].name, "");

    assert_int_equal(all[2].slots.size(), 2);
    assert_int_equal(all[2].slots[0].first, 0);
    assert_int_equal(all[2].slots[0].second, 0);
    assert_int_equal(all[2].slots[1].first, 2);
    assert_int_equal(all[2].slots[1].second, 5460);
}

void servers_that_cannot_be_reached_are_left_out(void **)
{
    assert_int_equal(
        primaries("a :0@0 master,noaddr - 0 0 1 disconnected 1-2\n"
                  "b 127.0.0.1:1@2 handshake,master - 0 0 1 connected 3\n"
                  "c 127.0.0.1:1@2 slave,fail a 0 0 1 connected\n")
            .size(),
        0);
}

void a_server_may_not_know_its_own_address(void **)
{
    std::vector<Found> all =
        primaries("a :7000@17000 myself,master - 0 0 1 connected 1-2\r\n");

    assert_int_equal(all.size(), 1);
    assert_text_equal(all[0].host, "");
    assert_int_equal(all[0].port, 7000);
    assert_int_equal(all[0].slots[0].second, 2);
}

void ipv6_and_the_notation_of_old_servers(void **)
{
    std::vector<Found> all =
        primaries("a 2001:db8::1:7000@17000 master - 0 0 1 connected 5\n"
                  "b 127.0.0.1:7001 master - 0 0 1 connected 6\n");

    assert_int_equal(all.size(), 2);
    assert_text_equal(all[0].host, "2001:db8::1");
    assert_int_equal(all[1].port, 7001);
}

void nonsense_is_survived(void **)
{
    for (std::string_view text :
         {"", "\n", "\n\n\n", "x", "a b c d e f g h i", "master master master",
          "a 1.2.3.4:5@6 master - 0 0 1 connected 16384 -1 7-3 x-y 1-99999 -"})
    {
        for (const Found &found : primaries(text)) {
            assert_int_equal(found.slots.size(), 0);
        }
    }
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(an_address_is_split_at_its_last_colon),
        cmocka_unit_test(a_host_that_is_not_known_is_empty),
        cmocka_unit_test(what_is_no_address_is_refused),
        cmocka_unit_test(a_redirection_says_what_and_where),
        cmocka_unit_test(what_is_no_redirection_is_refused),
        cmocka_unit_test(primaries_and_their_slots_are_found),
        cmocka_unit_test(servers_that_cannot_be_reached_are_left_out),
        cmocka_unit_test(a_server_may_not_know_its_own_address),
        cmocka_unit_test(ipv6_and_the_notation_of_old_servers),
        cmocka_unit_test(nonsense_is_survived),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
