/* What zones say about settled requests, letter by letter. */

#include "monitor/pure/sl_settlements_text.h"

#include "base/pure/sl_json.h"
#include "unit.h"

namespace {

using sl::Settlements;

struct Text {
    std::string all;

    Text &operator<<(std::string_view piece)
    {
        all += piece;
        return *this;
    }

    Text &operator<<(uint64_t number)
    {
        all += std::to_string(number);
        return *this;
    }
};

void fill(Settlements *settlements)
{
    settlements->add({100, 2500, true});
    settlements->add({100, 40, true});
    settlements->add({100, 0, true});
    settlements->add({100, 100, true});
    settlements->add({100, 100, false});
    settlements->add({1, 5000000000000, true});
}

std::string json(const Settlements &settlements)
{
    Text text;

    sl::write_settlements_json(settlements, text);
    assert_true(sl::is_json(text.all));

    return text.all;
}

void as_json(void **)
{
    Settlements settlements{};

    fill(&settlements);
    assert_text_equal(
        json(settlements),
        R"({"requests":{"up":2,"down":2,"even":1,"stood":1},"reserved":501,)"
        R"("entered":5000000002399,"given_back":160,"cost":{"buckets":[[0,1],)"
        R"([1,1],[10,1],[100,4],[1000,4],[10000,5],[100000,5],[1000000,5],)"
        R"([10000000,5],[100000000,5],[1000000000,5],[10000000000,5],)"
        R"([100000000000,5],[1000000000000,5]],"count":6,)"
        R"("sum":5000000002740}})");
}

void as_json_without_any(void **)
{
    Settlements settlements{};
    std::string text = json(settlements);

    assert_text_equal(
        text.substr(0, text.find(",\"cost\"")),
        R"({"requests":{"up":0,"down":0,"even":0,"stood":0},"reserved":0,)"
        R"("entered":0,"given_back":0)");
}

/* Other zones follow in each family, not behind all of them. */
void for_prometheus(void **)
{
    Settlements tokens{};
    Settlements bytes{};
    Text text;

    fill(&tokens);
    bytes.add({1, 1, true});
    sl::write_settlements_prometheus(text, [&](auto function) {
        function(std::string_view("tokens"), tokens);
        function(std::string_view("bytes"), bytes);
    });

    std::string expected =
        R"(# HELP zone_settlements_total Requests that were settled, by whether they cost more than they had reserved, less, just that, or nobody said.
# TYPE zone_settlements_total counter
zone_settlements_total{zone="tokens",direction="up"} 2
zone_settlements_total{zone="tokens",direction="down"} 2
zone_settlements_total{zone="tokens",direction="even"} 1
zone_settlements_total{zone="tokens",direction="stood"} 1
zone_settlements_total{zone="bytes",direction="up"} 0
zone_settlements_total{zone="bytes",direction="down"} 0
zone_settlements_total{zone="bytes",direction="even"} 1
zone_settlements_total{zone="bytes",direction="stood"} 0
# HELP zone_reserved_units_total What requests that were settled had reserved when they came.
# TYPE zone_reserved_units_total counter
zone_reserved_units_total{zone="tokens"} 501
zone_reserved_units_total{zone="bytes"} 1
# HELP zone_entered_units_total What requests turned out to cost beyond what they had reserved.
# TYPE zone_entered_units_total counter
zone_entered_units_total{zone="tokens"} 5000000002399
zone_entered_units_total{zone="bytes"} 0
# HELP zone_given_back_units_total What requests had reserved and turned out not to cost.
# TYPE zone_given_back_units_total counter
zone_given_back_units_total{zone="tokens"} 160
zone_given_back_units_total{zone="bytes"} 0
# HELP zone_request_cost What requests that were settled cost.
# TYPE zone_request_cost histogram
zone_request_cost_bucket{zone="tokens",le="0"} 1
zone_request_cost_bucket{zone="tokens",le="1"} 1
zone_request_cost_bucket{zone="tokens",le="10"} 1
zone_request_cost_bucket{zone="tokens",le="100"} 4
zone_request_cost_bucket{zone="tokens",le="1000"} 4
zone_request_cost_bucket{zone="tokens",le="10000"} 5
zone_request_cost_bucket{zone="tokens",le="100000"} 5
zone_request_cost_bucket{zone="tokens",le="1000000"} 5
zone_request_cost_bucket{zone="tokens",le="10000000"} 5
zone_request_cost_bucket{zone="tokens",le="100000000"} 5
zone_request_cost_bucket{zone="tokens",le="1000000000"} 5
zone_request_cost_bucket{zone="tokens",le="10000000000"} 5
zone_request_cost_bucket{zone="tokens",le="100000000000"} 5
zone_request_cost_bucket{zone="tokens",le="1000000000000"} 5
zone_request_cost_bucket{zone="tokens",le="+Inf"} 6
zone_request_cost_sum{zone="tokens"} 5000000002740
zone_request_cost_count{zone="tokens"} 6
zone_request_cost_bucket{zone="bytes",le="0"} 0
zone_request_cost_bucket{zone="bytes",le="1"} 1
)";
    std::string said = text.all;

    for (size_t at = said.find("nginx_sliding_limit_"); at != said.npos;
         at = said.find("nginx_sliding_limit_"))
    {
        said.erase(at, sizeof("nginx_sliding_limit_") - 1);
    }

    assert_text_equal(said.substr(0, expected.size()), expected);
    assert_text_equal(said.substr(said.rfind("zone_request_cost_sum")),
                      "zone_request_cost_sum{zone=\"bytes\"} 1\n"
                      "zone_request_cost_count{zone=\"bytes\"} 1\n");
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(as_json),
        cmocka_unit_test(as_json_without_any),
        cmocka_unit_test(for_prometheus),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
