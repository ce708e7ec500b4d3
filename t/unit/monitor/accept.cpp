/* What an Accept header says about a type. */

#include "monitor/pure/sl_accept.h"

#include "unit.h"

namespace {

using sl::accepted_quality;

void the_type_itself(void **)
{
    assert_int_equal(accepted_quality("text/html", "text/html"), 1000);
    assert_int_equal(accepted_quality("TEXT/Html", "text/html"), 1000);
    assert_int_equal(accepted_quality("text/plain", "text/html"), 0);
    assert_int_equal(accepted_quality("", "text/html"), 0);
    assert_int_equal(accepted_quality("text/html;q=0.25", "text/html"), 250);
    assert_int_equal(
        accepted_quality(" text/html ; version=1 ; q=0.5 ,x/y", "text/html"),
        500);
    assert_int_equal(accepted_quality("text/html;q=0", "text/html"), 0);
    assert_int_equal(accepted_quality("text/html;q=0.", "text/html"), 0);
    assert_int_equal(accepted_quality("text/html;q=1.000", "text/html"), 1000);
    assert_int_equal(accepted_quality("text/html;q=0.125", "text/html"), 125);
}

void ranges(void **)
{
    assert_int_equal(accepted_quality("*/*;q=0.1", "text/html"), 100);
    assert_int_equal(accepted_quality("text/*;q=0.2", "text/html"), 200);
    assert_int_equal(accepted_quality("tex/*", "text/html"), 0);
    assert_int_equal(accepted_quality("text/*", "text"), 0);
}

void the_best_fit_decides(void **)
{
    const char *accept = "*/*;q=0.9, text/*;q=0.5, text/html;q=0.1";

    assert_int_equal(accepted_quality(accept, "text/html"), 100);
    assert_int_equal(accepted_quality(accept, "text/plain"), 500);
    assert_int_equal(accepted_quality(accept, "application/json"), 900);

    /* said twice, as Prometheus does: the better one */
    assert_int_equal(accepted_quality("a/b;q=0.3,a/b;q=0.7,a/b;q=0.2", "a/b"),
                     700);
}

/* RFC 9110 has a point behind the first digit, and nothing else. */
void what_is_no_quality_is_taken_as_the_best(void **)
{
    assert_int_equal(accepted_quality("text/html;q=0125", "text/html"), 1000);
    assert_int_equal(accepted_quality("text/html;q=00", "text/html"), 1000);
    assert_int_equal(accepted_quality("text/html;q=0x5", "text/html"), 1000);
    assert_int_equal(accepted_quality("text/html;q=0.5x", "text/html"), 1000);
}

void nonsense_is_no_danger(void **)
{
    assert_int_equal(accepted_quality(",,;;q=,;", "text/html"), 0);
    assert_int_equal(accepted_quality("text/html;q=abc", "text/html"), 1000);
    assert_int_equal(accepted_quality("text/html;q=0.1x", "text/html"), 1000);
    assert_int_equal(accepted_quality("text/html;q=0.99999", "text/html"), 999);
    assert_int_equal(accepted_quality("/*", "text/html"), 0);
    assert_int_equal(accepted_quality("*", "text/html"), 0);
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(the_type_itself),
        cmocka_unit_test(ranges),
        cmocka_unit_test(the_best_fit_decides),
        cmocka_unit_test(what_is_no_quality_is_taken_as_the_best),
        cmocka_unit_test(nonsense_is_no_danger),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
