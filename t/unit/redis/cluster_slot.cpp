/* Slots of keys, as Redis itself says (CLUSTER KEYSLOT). */

#include "redis/pure/sl_cluster_slot.h"

#include "unit.h"

namespace {

using namespace std::string_view_literals;

void keys_are_where_redis_has_them(void **)
{
    assert_int_equal(sl::cluster_slot("123456789"), 0x31c3);
    assert_int_equal(sl::cluster_slot("foo"), 12182);
    assert_int_equal(sl::cluster_slot("bar"), 5061);
    assert_int_equal(sl::cluster_slot(""), 0);
    assert_int_equal(sl::cluster_slot("\0"sv), 0);
}

void only_what_stands_in_the_first_braces_counts(void **)
{
    unsigned foo = sl::cluster_slot("foo");

    assert_int_equal(sl::cluster_slot("{foo}"), foo);
    assert_int_equal(sl::cluster_slot("a:{foo}:b"), foo);
    assert_int_equal(sl::cluster_slot("{foo}{bar}"), foo);
    assert_int_equal(sl::cluster_slot("rate_limit:a:{foo}"),
                     sl::cluster_slot("rate_limit:b:{foo}"));
}

void braces_without_anything_in_them_do_not(void **)
{
    assert_int_not_equal(sl::cluster_slot("{}foo"), sl::cluster_slot("foo"));
    assert_int_not_equal(sl::cluster_slot("{}foo"), sl::cluster_slot(""));
    assert_int_not_equal(sl::cluster_slot("{foo"), sl::cluster_slot("foo"));
    assert_int_not_equal(sl::cluster_slot("foo}{"), sl::cluster_slot("foo"));
    assert_int_equal(sl::cluster_slot("foo{{bar}}zap"),
                     sl::cluster_slot("{bar"));
}

void every_slot_is_one_there_is(void **)
{
    for (int i = 0; i < 100000; i++) {
        assert_true(sl::cluster_slot(std::to_string(i)) < sl::kClusterSlots);
    }
}

void every_slot_has_a_tag(void **)
{
    for (unsigned slot = 0; slot < sl::kClusterSlots; slot++) {
        std::string tag(sl::tag_of_slot(slot).view());

        assert_int_equal(sl::cluster_slot("any:{" + tag + "}"), slot);
    }
}

/* The keys that a connection is tried with. */
void whatever_the_prefix_these_two_are_in_different_slots(void **)
{
    for (int i = 0; i < 100000; i++) {
        std::string prefix = std::to_string(i);

        assert_int_not_equal(sl::cluster_slot(prefix + "::probe"),
                             sl::cluster_slot(prefix + "::other"));
    }
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_where_redis_has_them),
        cmocka_unit_test(only_what_stands_in_the_first_braces_counts),
        cmocka_unit_test(braces_without_anything_in_them_do_not),
        cmocka_unit_test(every_slot_is_one_there_is),
        cmocka_unit_test(every_slot_has_a_tag),
        cmocka_unit_test(whatever_the_prefix_these_two_are_in_different_slots),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
