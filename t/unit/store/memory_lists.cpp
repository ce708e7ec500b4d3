/* Which keys go by themselves, and which ones make room for others. */

#include "store/pure/sl_memory_lists.h"

#include <string>

#include "memory_table.h"

namespace {

using sl::Algorithm;
using sl::LimitQuery;
using sl::LimitState;

/* A table and its clients, each of which has a number. */
struct Clients {
    static constexpr int64_t kHour = 3600 * kSecond;

    Table t;
    int64_t now = kSecond;
    std::string name;

    LimitQuery limit(int client, int64_t window, int64_t cost)
    {
        name = "client" + std::to_string(client);

        return {"zone",          name, window, 5,     cost,
                Algorithm::kLog, 0,    false,  false, false};
    }

    /* A second later. */
    void comes(int client, int64_t window = kHour)
    {
        LimitState state;

        now += kSecond;
        assert_true(t.ask(limit(client, window, 1), now, &state));
        assert_true(state.is_counted);
    }

    bool is_remembered(int client, int64_t window = kHour)
    {
        LimitState state;

        assert_true(t.ask(limit(client, window, 0), now, &state));

        return state.used > 0;
    }

    uint64_t keys() const { return t.table.stats().keys; }
    uint64_t evictions() const { return t.table.stats().evictions; }

    /* As many as there is memory for: with the next one, somebody goes. */
    int fill()
    {
        int count = fill_but_for_one();

        comes(count++);

        return count;
    }

    /* Room is left for one more: it is seen to before it is known whether a
     * client who comes again needs it. */
    int fill_but_for_one()
    {
        int count = 0;

        while (t.table.stats().free_cells >= 4) {
            comes(count++);
        }

        assert_int_equal(evictions(), 0);
        assert_int_equal(keys(), count);

        return count;
    }
};

void each_question_removes_one_who_came_once_and_a_regular(void **)
{
    Clients clients;

    for (int i = 0; i < 20; i++) {
        clients.comes(i);
    }
    for (int i = 0; i < 10; i++) {
        clients.comes(i);
    }

    assert_int_equal(clients.keys(), 20);

    /* the oldest of those who came once is exactly a window old */
    clients.now = 12 * kSecond + Clients::kHour - 1;
    assert_false(clients.is_remembered(99));
    assert_int_equal(clients.keys(), 20);
    clients.now++;
    assert_false(clients.is_remembered(99));
    assert_int_equal(clients.keys(), 19);

    clients.now += Clients::kHour;

    for (int left = 17; left > 0; left -= 2) {
        assert_false(clients.is_remembered(99));
        assert_int_equal(clients.keys(), left);
    }

    /* a regular is left */
    assert_false(clients.is_remembered(99));
    assert_int_equal(clients.keys(), 0);
    assert_int_equal(clients.evictions(), 0);
    assert_int_equal(clients.t.table.stats().free_cells,
                     clients.t.table.stats().cells);
}

void each_limit_of_a_question_removes_its_own(void **)
{
    Clients clients;
    LimitState states[2];
    int64_t time;

    for (int i = 0; i < 10; i++) {
        clients.comes(i, kSecond);
        clients.comes(100 + i, Clients::kHour);
    }

    /* those of the short window went one by one, as each next one came */
    assert_int_equal(clients.keys(), 11);
    clients.now += 2 * Clients::kHour;

    const LimitQuery both[] = {
        {"zone", "a", kSecond, 5, 0, Algorithm::kLog, 0, false, false, false},
        {"zone", "b", Clients::kHour, 5, 0, Algorithm::kLog, 0, false, false,
         false},
    };

    for (uint64_t left : {9, 8, 7}) {
        clients.t.table.ask(both, 2, clients.now, states, &time);
        assert_int_equal(clients.keys(), left);
    }
}

void who_has_not_been_asked_about_for_longest_makes_room(void **)
{
    Clients clients;
    int count = clients.fill();

    for (int i = 0; i < 5; i++) {
        clients.comes(count + i);
        assert_int_equal(clients.evictions(), i + 1);
    }

    for (int i = 0; i < 5; i++) {
        assert_false(clients.is_remembered(i));
        assert_true(clients.is_remembered(count + i));
    }

    for (int i = 5; i < count; i++) {
        assert_true(clients.is_remembered(i));
    }
}

/* They are in different lists. */
void however_long_their_windows_are(void **)
{
    const int64_t windows[] = {Clients::kHour, 31 * 24 * Clients::kHour,
                               4 * Clients::kHour};
    Clients clients;
    int count = 0;

    for (; clients.t.table.stats().free_cells >= 2; count++) {
        clients.comes(count, windows[count % 3]);
    }

    for (int i = 0; i < 6; i++) {
        clients.comes(count + i);
        assert_int_equal(clients.evictions(), i + 1);
    }

    for (int i = 0; i < 12; i++) {
        assert_int_equal(clients.is_remembered(i, windows[i % 3]), i >= 6);
    }
}

void three_of_four_may_be_regulars(void **)
{
    Clients clients;
    int count = clients.fill_but_for_one();

    for (int i = 0; i < count; i++) {
        clients.comes(i);
    }

    /* those that were the first ones to come again are regulars no more */
    int others = count - count * 3 / 4;

    clients.comes(count);
    assert_int_equal(clients.evictions(), 0);

    for (int i = 1; i <= others; i++) {
        clients.comes(count + i);
    }

    assert_int_equal(clients.evictions(), others);

    /* now those who came once make room for each other */
    clients.comes(2 * count);
    assert_int_equal(clients.evictions(), others + 1);
    assert_false(clients.is_remembered(count));

    for (int i = 0; i < count; i++) {
        assert_int_equal(clients.is_remembered(i), i >= others);
    }
}

void of_regulars_the_one_that_stayed_away_for_longest_becomes_none(void **)
{
    Clients clients;
    int count = clients.fill_but_for_one();

    for (int i = 0; i < count; i++) {
        clients.comes(i);

        /* so that it is not the first one any more */
        if (i == count / 2) {
            clients.comes(0);
        }
    }

    int others = count - count * 3 / 4;

    for (int i = 0; i <= others; i++) {
        clients.comes(count + i);
    }

    for (int i = 0; i < count; i++) {
        assert_int_equal(clients.is_remembered(i), i == 0 || i > others);
    }
}

void who_is_asked_about_does_not_make_room(void **)
{
    Clients clients;
    LimitState states[3];
    int64_t time;
    int count = clients.fill();

    /* the two that would go next, and one that needs room */
    const LimitQuery limits[] = {
        {"zone", "client0", Clients::kHour, 5, 1, Algorithm::kLog, 0, false,
         false, false},
        {"zone", "client1", Clients::kHour, 5, 1, Algorithm::kLog, 0, false,
         false, false},
        {"zone", "another", Clients::kHour, 5, 1, Algorithm::kLog, 0, false,
         false, false},
    };

    assert_true(
        clients.t.table.ask(limits, 3, clients.now + kSecond, states, &time)
        == sl::Decided::kYes);
    assert_int_equal(states[0].used, 2);
    assert_int_equal(states[1].used, 2);
    assert_int_equal(states[2].used, 1);

    /* room for all that the three could need was made */
    assert_int_equal(clients.evictions(), 3);

    for (int i = 2; i < count; i++) {
        assert_int_equal(clients.is_remembered(i), i >= 5);
    }
}

void who_does_not_matter_any_more_goes_before_all_others(void **)
{
    Clients clients;
    int count = 0;

    /* a regular with a short window, and many that came once */
    clients.comes(1000, kSecond);
    clients.now -= kSecond;
    clients.comes(1000, kSecond);

    for (; clients.t.table.stats().free_cells >= 2; count++) {
        clients.comes(count);
    }

    clients.comes(count);
    assert_int_equal(clients.evictions(), 0);
    clients.comes(count + 1);
    assert_int_equal(clients.evictions(), 1);
    assert_true(clients.is_remembered(1));
    assert_false(clients.is_remembered(0));
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(each_question_removes_one_who_came_once_and_a_regular),
        cmocka_unit_test(each_limit_of_a_question_removes_its_own),
        cmocka_unit_test(who_has_not_been_asked_about_for_longest_makes_room),
        cmocka_unit_test(however_long_their_windows_are),
        cmocka_unit_test(three_of_four_may_be_regulars),
        cmocka_unit_test(
            of_regulars_the_one_that_stayed_away_for_longest_becomes_none),
        cmocka_unit_test(who_is_asked_about_does_not_make_room),
        cmocka_unit_test(who_does_not_matter_any_more_goes_before_all_others),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
