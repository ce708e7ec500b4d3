/* What every unit test starts from: cmocka, and an assertion about text. */

#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string>
#include <string_view>

extern "C" {
#include <cmocka.h>
}

/* Compares all bytes, NULs included; takes whatever a string_view can be made
 * of. */
#define assert_text_equal(actual, expected)                                    \
    do {                                                                       \
        std::string actual_text{std::string_view{actual}};                     \
        std::string expected_text{std::string_view{expected}};                 \
                                                                               \
        assert_string_equal(actual_text.c_str(), expected_text.c_str());       \
        assert_int_equal(actual_text.size(), expected_text.size());            \
        assert_true(actual_text == expected_text);                             \
    } while (0)
