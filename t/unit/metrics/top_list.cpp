/* Who was there most: exact while there is room, and close to it beyond. */

#include "metrics/pure/sl_top_list.h"

#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "unit.h"

namespace {

using sl::TopClient;
using sl::TopList;

constexpr int64_t kNow = 1700000000000;
constexpr int64_t kIdle = 3600000;
constexpr size_t kRoom = 20;

uint64_t hash_of(const std::string &key)
{
    return std::hash<std::string>()(key) | 1;
}

/* A list, and what is true. */
struct Top {
    std::unique_ptr<TopList> list{new TopList()};
    std::map<std::string, uint64_t> truth;
    TopClient found[kRoom];
    size_t count = 0;

    TopClient &add(const std::string &key, int64_t now = kNow)
    {
        truth[key]++;
        return list->count(hash_of(key), key, now, kIdle);
    }

    void read(int64_t now = kNow)
    {
        count = list->read(now, kIdle, found, kRoom);
    }
};

void exact_while_there_is_room(void **)
{
    Top top;

    for (int client = 1; client <= 64; client++) {
        for (int i = 0; i < client; i++) {
            top.add("client " + std::to_string(client), kNow + i);
        }
    }

    top.read(kNow + 64);
    assert_int_equal(top.count, kRoom);

    for (size_t i = 0; i < kRoom; i++) {
        assert_text_equal(top.found[i].text(),
                          "client " + std::to_string(64 - i));
        assert_int_equal(top.found[i].count, 64 - i);
        assert_int_equal(top.found[i].missed_at_most, 0);
        assert_int_equal(top.found[i].first_ms, kNow);
        assert_int_equal(top.found[i].last_ms, kNow + 63 - int64_t(i));
    }
}

/* A crowd of those who come once cannot hide who comes often, and what is said
 * of them is never more than the truth, nor less by more than is said. */
void a_crowd_hides_nobody(void **)
{
    Top top;

    for (int i = 0; i < 100000; i++) {
        top.add("crowd " + std::to_string(i));

        for (int heavy = 1; heavy <= 5; heavy++) {
            if (i % (10 * heavy) == 0) {
                top.add("heavy " + std::to_string(heavy));
            }
        }
    }

    top.read();

    for (size_t i = 0; i < 5; i++) {
        std::string name = "heavy " + std::to_string(i + 1);
        uint64_t truth = top.truth[name];

        assert_text_equal(top.found[i].text(), name);
        assert_true(top.found[i].count <= truth);
        assert_true(top.found[i].count + top.found[i].missed_at_most >= truth);
    }
}

void whoever_was_away_for_long_is_not_shown(void **)
{
    Top top;

    top.add("early");
    top.add("late", kNow + kIdle);
    top.read(kNow + kIdle + 1);
    assert_int_equal(top.count, 1);
    assert_text_equal(top.found[0].text(), "late");

    /* and starts anew, once */
    assert_int_equal(top.add("early", kNow + kIdle + 1).count, 1);
    assert_int_equal(top.add("early", kNow + kIdle + 1).count, 2);
    top.read(kNow + kIdle + 1);
    assert_int_equal(top.count, 2);
}

void those_who_were_away_make_way_first(void **)
{
    Top top;

    for (int i = 0; i < 64; i++) {
        top.add(std::to_string(i), i == 5 ? kNow : kNow + kIdle);
    }

    assert_int_equal(top.add("new", kNow + kIdle + 1).missed_at_most, 0);
    assert_int_equal(top.add("newer", kNow + kIdle + 1).missed_at_most, 1);
}

void long_and_strange_keys(void **)
{
    Top top;
    std::string longer(5000, 'x');
    std::string binary("a\0\n\xff", 4);

    assert_true(top.add(longer).is_cut);
    assert_int_equal(top.add(longer).count, 2);
    assert_text_equal(top.add(longer).text(),
                      std::string(TopClient::kMaxKey, 'x'));
    assert_text_equal(top.add(binary).text(), binary);
    assert_text_equal(top.add("").text(), "");
    assert_false(top.add(std::string(TopClient::kMaxKey, 'y')).is_cut);

    /* a hash of 0 marks a free place */
    assert_int_equal(top.list->count(0, "zero", kNow, kIdle).count, 1);
    assert_int_equal(top.list->count(0, "zero", kNow, kIdle).count, 2);
}

void what_a_killed_process_left_is_no_danger(void **)
{
    TopClient client{};

    client.key_size = 255;
    assert_int_equal(client.text().size(), sizeof(client.key));
}

void three_windows_in_a_row_are_worth_a_line(void **)
{
    TopClient client{};

    assert_false(persists(&client, 100));
    assert_false(persists(&client, 100));
    assert_false(persists(&client, 101));
    assert_true(persists(&client, 102));
    assert_int_equal(client.windows_in_a_row, 3);

    /* until somebody has written it */
    assert_true(persists(&client, 102));
    told(&client);
    assert_false(persists(&client, 103));
    assert_false(persists(&client, 104));
    assert_true(persists(&client, 105));
    assert_int_equal(client.windows_in_a_row, 6);
}

void a_window_of_peace_ends_it(void **)
{
    TopClient client{};

    persists(&client, 100);
    persists(&client, 101);
    assert_false(persists(&client, 103));
    assert_false(persists(&client, 104));
    assert_true(persists(&client, 105));
    told(&client);

    /* and what the log was told does not count any more */
    persists(&client, 200);
    persists(&client, 201);
    assert_true(persists(&client, 202));
}

std::string masked(const std::string &key, uint64_t hash)
{
    TopClient client{};
    char text[sl::kMaxMaskedKey];

    client.hash = hash;
    client.key_size = static_cast<uint8_t>(key.copy(client.key, 59));

    return {text, mask_key(client, text)};
}

void masked_keys_show_little(void **)
{
    constexpr uint64_t kHash = 0x9c1e22ab00000000;

    assert_text_equal(masked("3f2a8b6c-1234-5678", kHash), "3f2a...#9c1e22ab");
    assert_text_equal(masked("12345678", kHash), "12...#9c1e22ab");
    assert_text_equal(masked("1234", kHash), "1...#9c1e22ab");
    assert_text_equal(masked("abc", kHash), "...#9c1e22ab");
    assert_text_equal(masked("", 0), "...#00000000");

    /* no half of a character */
    assert_text_equal(
        masked("\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc", kHash),
        "\xc3\xa4...#9c1e22ab");
}

/* Who looks for a client by its key finds the mask that the lists show. */
void a_key_has_the_mask_of_its_client(void **)
{
    for (uint64_t hash : {uint64_t{0}, uint64_t{0x9c1e22ab00000000}}) {
        for (const std::string &key :
             {std::string("alice"), std::string(200, 'x')}) {
            Top top;
            TopClient &client = top.list->count(hash, key, 1000, 1000);
            char listed[sl::kMaxMaskedKey];
            char asked[sl::kMaxMaskedKey];
            size_t size = mask_key(client, listed);

            assert_text_equal(
                std::string_view(asked, sl::mask_key(hash, key, asked)),
                std::string_view(listed, size));
        }
    }
}

void whatever_bytes_a_killed_process_leaves_do_no_harm(void **)
{
    for (int byte : {0x01, 0x7f, 0x80, 0xff}) {
        Top top;

        memset(static_cast<void *>(top.list.get()), byte, sizeof(TopList));

        TopClient &added = top.add("newcomer");

        assert_int_equal(added.count, 1);
        assert_text_equal(added.text(), "newcomer");

        top.read();
        assert_in_range(top.count, 1, kRoom);

        for (size_t i = 0; i < top.count; i++) {
            char masked[sl::kMaxMaskedKey];

            assert_true(top.found[i].text().size() <= sizeof(added.key));
            assert_true(sl::mask_key(top.found[i], masked) <= sizeof(masked));
        }
    }
}

void a_last_window_that_never_was_begins_a_new_row(void **)
{
    for (int64_t window : {INT64_MIN, int64_t{-1}, INT64_MAX}) {
        TopClient client{};

        client.windows_in_a_row = 100;
        client.window = window;

        assert_false(sl::persists(&client, 1700));
        assert_int_equal(client.windows_in_a_row, 1);
    }
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(exact_while_there_is_room),
        cmocka_unit_test(a_crowd_hides_nobody),
        cmocka_unit_test(whoever_was_away_for_long_is_not_shown),
        cmocka_unit_test(those_who_were_away_make_way_first),
        cmocka_unit_test(long_and_strange_keys),
        cmocka_unit_test(what_a_killed_process_left_is_no_danger),
        cmocka_unit_test(three_windows_in_a_row_are_worth_a_line),
        cmocka_unit_test(a_window_of_peace_ends_it),
        cmocka_unit_test(masked_keys_show_little),
        cmocka_unit_test(a_key_has_the_mask_of_its_client),
        cmocka_unit_test(whatever_bytes_a_killed_process_leaves_do_no_harm),
        cmocka_unit_test(a_last_window_that_never_was_begins_a_new_row),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
