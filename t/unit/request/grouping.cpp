/* Which limits are asked about in one question. */

#include "request/pure/sl_grouping.h"

#include <string>
#include <vector>

#include "unit.h"

namespace {

using sl::Groupable;
using sl::Together;

/* Only told apart. */
const char kStores[2] = {};

const sl::Store *store(int i)
{
    return reinterpret_cast<const sl::Store *>(&kStores[i]);
}

Groupable limit(int of_store, Together together, std::string_view key = "k")
{
    return {false, store(of_store), together, key};
}

/* Asks question after question: "0 2, 1" are two. */
std::string questions(std::vector<Groupable> limits)
{
    std::string all;

    for (;;) {
        sl::Group group = sl::next_group(
            limits.size(), [&limits](size_t i) { return limits[i]; });

        if (group.count == 0) {
            return all;
        }

        all += all.empty() ? "" : ", ";

        for (size_t i = 0; i < group.count; i++) {
            all += (i > 0 ? " " : "") + std::to_string(group.members[i]);
            limits[group.members[i]].is_asked = true;
        }
    }
}

void without_limits_there_is_no_question(void **)
{
    assert_text_equal(questions({}), "");
}

void what_has_been_asked_about_is_not_asked_about_again(void **)
{
    Groupable asked = limit(0, Together::kAll);

    asked.is_asked = true;
    assert_text_equal(questions({asked}), "");
    assert_text_equal(questions({asked, limit(0, Together::kAll), asked}), "1");
}

void a_store_may_decide_about_all_at_once(void **)
{
    assert_text_equal(
        questions({limit(0, Together::kAll, "a"), limit(0, Together::kAll, "b"),
                   limit(0, Together::kAll, "c")}),
        "0 1 2");
}

void a_store_may_decide_about_one_key_at_once(void **)
{
    assert_text_equal(questions({limit(0, Together::kSameKey, "a"),
                                 limit(0, Together::kSameKey, "b"),
                                 limit(0, Together::kSameKey, "a"),
                                 limit(0, Together::kSameKey, "b")}),
                      "0 2, 1 3");
}

void a_store_may_decide_about_each_alone(void **)
{
    assert_text_equal(
        questions({limit(0, Together::kNone), limit(0, Together::kNone)}),
        "0, 1");
}

void stores_are_asked_one_after_another(void **)
{
    assert_text_equal(
        questions({limit(1, Together::kAll), limit(0, Together::kAll),
                   limit(1, Together::kAll), limit(0, Together::kAll)}),
        "0 2, 1 3");
}

void a_question_has_room_for_16(void **)
{
    std::vector<Groupable> many(18, limit(0, Together::kAll));

    assert_text_equal(questions(many),
                      "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15, 16 17");
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(without_limits_there_is_no_question),
        cmocka_unit_test(what_has_been_asked_about_is_not_asked_about_again),
        cmocka_unit_test(a_store_may_decide_about_all_at_once),
        cmocka_unit_test(a_store_may_decide_about_one_key_at_once),
        cmocka_unit_test(a_store_may_decide_about_each_alone),
        cmocka_unit_test(stores_are_asked_one_after_another),
        cmocka_unit_test(a_question_has_room_for_16),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
