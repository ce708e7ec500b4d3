/* What Redis says about a client, and what is not believed. */

#include "redis/pure/sl_client_reply.h"

#include "unit.h"

namespace {

using namespace std::string_view_literals;

/* ---- rulings as they are written down ---- */

void a_ruling_is_read(void **)
{
    sl::Ruling ruling;

    assert_true(
        sl::read_ruling("1795000000000001:500:1795086400000002", &ruling));
    assert_true(ruling.ban_until_us == 1795000000000001);
    assert_int_equal(ruling.max, 500);
    assert_true(ruling.max_until_us == 1795086400000002);

    assert_true(sl::read_ruling("17:0:0", &ruling));
    assert_int_equal(ruling.ban_until_us, 17);
    assert_int_equal(ruling.max, sl::kOwnMax);
    assert_int_equal(ruling.max_until_us, 0);

    assert_true(sl::read_ruling("0:1:2", &ruling));
    assert_int_equal(ruling.ban_until_us, 0);
    assert_int_equal(ruling.max, 1);
    assert_int_equal(ruling.max_until_us, 2);

    assert_true(sl::read_ruling("0:0:0", &ruling));
    assert_true(sl::read_ruling("9007199254740992:2147483647:9007199254740992",
                                &ruling));
    assert_true(ruling.max_until_us == 9007199254740992);
}

void what_is_no_ruling_is_not_read(void **)
{
    for (std::string_view text :
         {""sv, ":"sv, "::"sv, ":::"sv, "1"sv, "1:2"sv, "1:2:"sv, ":1:2"sv,
          "1::2"sv, "1:2:3:"sv, "1:2:3:4"sv, "!1:2:3"sv, "-1:2:3"sv, "1:-2:3"sv,
          "+1:2:3"sv, "1:2:3 "sv, " 1:2:3"sv, "1:2:3\0"sv, "1\0:2:3"sv,
          "a:2:3"sv, "1:2.0:3"sv, "1e3:2:3"sv, "0x1:2:3"sv,
          /* too large */
          "9007199254740993:0:0"sv, "0:1000000000000001:1"sv,
          "99999999999999999999999999999999:0:0"sv,
          "0:1:18446744073709551617"sv,
          /* a max that ends, or has ended, but is none; and the reverse */
          "0:0:1"sv, "0:1:0"sv})
    {
        sl::Ruling ruling;

        assert_false(sl::read_ruling(text, &ruling));
    }
}

void only_what_has_not_ended_is_told(void **)
{
    sl::RuledClient client{};

    assert_true(sl::ruled_now({10, 5, 20}, 9, &client));
    assert_int_equal(client.ban_left_us, 1);
    assert_int_equal(client.max, 5);
    assert_int_equal(client.max_left_us, 11);

    assert_true(sl::ruled_now({10, 5, 20}, 10, &client));
    assert_int_equal(client.ban_left_us, 0);
    assert_int_equal(client.max, 5);
    assert_int_equal(client.max_left_us, 10);

    assert_false(sl::ruled_now({10, 5, 20}, 20, &client));
    assert_int_equal(client.max, sl::kOwnMax);
    assert_int_equal(client.max_left_us, 0);

    assert_true(sl::ruled_now({30, 5, 20}, 20, &client));
    assert_int_equal(client.ban_left_us, 10);
    assert_int_equal(client.max, sl::kOwnMax);

    assert_false(sl::ruled_now({0, 0, 0}, 0, &client));
}

void a_time_is_digits_and_nothing_else(void **)
{
    int64_t time;

    assert_true(sl::read_time("1795000000123456", &time));
    assert_true(time == 1795000000123456);
    assert_true(sl::read_time("0", &time));

    for (std::string_view text :
         {""sv, ":"sv, "1:"sv, ":1"sv, "-1"sv, "1.5"sv, " 1"sv, "1 "sv,
          "9007199254740993"sv, "99999999999999999999999"sv})
    {
        assert_false(sl::read_time(text, &time));
    }
}

/* ---- where a client stands ---- */

void an_answer_has_six_words_and_three_for_each_request(void **)
{
    size_t requests = 0;

    for (size_t words = 0; words < 1000; words++) {
        bool is_answer =
            words >= 6 && (words - 6) % 3 == 0 && words <= 6 + 3 * 100;

        assert_int_equal(sl::requests_in_answer(words, &requests), is_answer);

        if (is_answer) {
            assert_int_equal(requests * 3 + 6, words);
        }
    }
}

bool stands(std::initializer_list<int64_t> list, size_t shown,
            sl::Standing *standing)
{
    int64_t numbers[sl::kStandingNumbers];

    std::copy(list.begin(), list.end(), numbers);

    return sl::read_standing(numbers, shown, standing);
}

void where_a_client_stands_is_read(void **)
{
    static sl::Standing standing;

    assert_true(stands({7, 1000, 60, 500, 70, 3}, 2, &standing));
    assert_int_equal(standing.used, 7);
    assert_int_equal(standing.wait_us, 1000);
    assert_int_equal(standing.ban_left_us, 60);
    assert_int_equal(standing.max, 500);
    assert_int_equal(standing.max_left_us, 70);
    assert_int_equal(standing.entries, 3);
    assert_int_equal(standing.shown, 2);

    assert_true(stands({0, 0, 0, 0, 0, 0}, 0, &standing));
    assert_int_equal(standing.max, sl::kOwnMax);
}

void where_no_client_can_stand_is_not(void **)
{
    static sl::Standing standing;

    constexpr int64_t kMost = INT64_MAX;

    for (auto numbers : std::initializer_list<std::initializer_list<int64_t>>{
             {-1, 0, 0, 0, 0, 0},
             {0, -1, 0, 0, 0, 0},
             {0, 0, -1, 0, 0, 0},
             {0, 0, 0, -1, 1, 0},
             {0, 0, 0, 1, -1, 0},
             {0, 0, 0, 0, 0, -1},
             {kMost, 0, 0, 0, 0, 0},
             {0, kMost, 0, 0, 0, 0},
             {0, 0, kMost, 0, 0, 0},
             {0, 0, 0, 1000000000000001, 1, 0},
             {0, 0, 0, 1, kMost, 0},
             {0, 0, 0, 0, 0, kMost},
             {0, 0, 0, 1, 0, 0},
             {0, 0, 0, 0, 1, 0}})
    {
        assert_false(stands(numbers, 0, &standing));
    }

    assert_false(stands({1, 0, 0, 0, 0, 1}, 2, &standing));
}

void a_request_is_read(void **)
{
    sl::CountedRequest request;
    std::string id = "01900000-0000-7000-8000-000000000000";

    assert_true(sl::read_request(5, 3, id, &request));
    assert_int_equal(request.ago_us, 5);
    assert_int_equal(request.cost, 3);
    assert_text_equal(request.id_text(), id);

    assert_true(sl::read_request(0, 0, "", &request));
    assert_text_equal(request.id_text(), "");

    assert_false(sl::read_request(0, 1, id + "0", &request));
    assert_false(sl::read_request(-1, 1, "", &request));
    assert_false(sl::read_request(0, -1, "", &request));
    assert_false(sl::read_request(INT64_MAX, 1, "", &request));
    assert_false(sl::read_request(0, INT64_MAX, "", &request));
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_ruling_is_read),
        cmocka_unit_test(what_is_no_ruling_is_not_read),
        cmocka_unit_test(only_what_has_not_ended_is_told),
        cmocka_unit_test(a_time_is_digits_and_nothing_else),
        cmocka_unit_test(an_answer_has_six_words_and_three_for_each_request),
        cmocka_unit_test(where_a_client_stands_is_read),
        cmocka_unit_test(where_no_client_can_stand_is_not),
        cmocka_unit_test(a_request_is_read),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
