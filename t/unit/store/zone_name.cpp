#include "store/pure/sl_zone_name.h"

#include <string>

#include "unit.h"

namespace {

void a_zone_name_is_made_of_letters_digits_and_three_signs(void **)
{
    constexpr std::string_view kAllowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "abcdefghijklmnopqrstuvwxyz"
                                          "0123456789_.-";

    for (int ch = 0; ch < 256; ch++) {
        std::string one = std::string(1, static_cast<char>(ch));
        bool allowed = kAllowed.find(one) != kAllowed.npos;

        assert_int_equal(sl::is_zone_name(one), allowed);
        assert_int_equal(sl::is_zone_name("a" + one), allowed);
        assert_int_equal(sl::is_zone_name(one + "a"), allowed);
        assert_int_equal(sl::is_zone_name("a" + one + "a"), allowed);
    }

    assert_true(sl::is_zone_name(kAllowed.substr(0, 64)));
}

void a_zone_name_has_1_to_64_bytes(void **)
{
    assert_false(sl::is_zone_name(""));
    assert_false(sl::is_zone_name({}));
    assert_true(sl::is_zone_name("z"));
    assert_true(sl::is_zone_name(std::string(64, 'z')));
    assert_false(sl::is_zone_name(std::string(65, 'z')));
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_zone_name_is_made_of_letters_digits_and_three_signs),
        cmocka_unit_test(a_zone_name_has_1_to_64_bytes),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
