/* Whether a change comes from a page of this server's. */

#include "monitor/pure/sl_own_page.h"

#include "unit.h"

namespace {

using sl::is_json_type;
using sl::is_list_of_names;
using sl::is_listed;
using sl::is_name_of;
using sl::is_own_origin;

void the_type_of_json(void **)
{
    assert_true(is_json_type("application/json"));
    assert_true(is_json_type("Application/JSON"));
    assert_true(is_json_type("application/json; charset=utf-8"));
    assert_true(is_json_type("application/json ;charset=utf-8"));
    assert_true(is_json_type("application/json\t"));
    assert_true(is_json_type("application/json;"));
}

/* A page of somebody else's can have these sent without being asked. */
void what_is_not_json(void **)
{
    assert_false(is_json_type(""));
    assert_false(is_json_type(" "));
    assert_false(is_json_type(";"));
    assert_false(is_json_type("text/plain"));
    assert_false(is_json_type("text/plain; application/json"));
    assert_false(is_json_type("text/plain;application/json"));
    assert_false(is_json_type("application/jsonp"));
    assert_false(is_json_type("application/json, text/plain"));
    assert_false(is_json_type("application/x-www-form-urlencoded"));
}

void the_same_server(void **)
{
    assert_true(is_own_origin("http://example.org", "example.org"));
    assert_true(is_own_origin("https://example.org", "example.org"));
    assert_true(is_own_origin("https://Example.ORG", "eXample.org"));
    assert_true(is_own_origin("HTTP://example.org", "example.org"));
    assert_true(is_own_origin("http://example.org:8080", "example.org:8080"));
    assert_true(is_own_origin("http://[::1]:8080", "[::1]:8080"));
    assert_true(is_own_origin("http://[2001:DB8::1]", "[2001:db8::1]"));
}

void a_default_port_may_be_named_or_not(void **)
{
    assert_true(is_own_origin("http://example.org:80", "example.org"));
    assert_true(is_own_origin("http://example.org", "example.org:80"));
    assert_true(is_own_origin("https://example.org:443", "example.org"));
    assert_true(is_own_origin("https://example.org", "example.org:443"));

    /* but it is that of the scheme */
    assert_false(is_own_origin("http://example.org", "example.org:443"));
    assert_false(is_own_origin("http://example.org:443", "example.org"));
    assert_false(is_own_origin("https://example.org:80", "example.org"));
    assert_false(is_own_origin("http://example.org:8080", "example.org"));
    assert_false(is_own_origin("http://example.org", "example.org:8080"));
}

void other_servers(void **)
{
    assert_false(is_own_origin("http://evil.example", "example.org"));
    assert_false(
        is_own_origin("http://example.org.evil.example", "example.org"));
    assert_false(is_own_origin("http://evil-example.org", "example.org"));
    assert_false(is_own_origin("http://a.example.org", "example.org"));
    assert_false(is_own_origin("http://example.org/", "example.org"));
    assert_false(is_own_origin("http://x@example.org", "example.org"));
}

void what_is_no_origin(void **)
{
    assert_false(is_own_origin("null", "null"));
    assert_false(is_own_origin("", "example.org"));
    assert_false(is_own_origin("", ""));
    assert_false(is_own_origin("http://", ""));
    assert_false(is_own_origin("http://:80", ":80"));
    assert_false(is_own_origin("https://:443", ""));
    assert_false(is_own_origin("example.org", "example.org"));
    assert_false(is_own_origin("//example.org", "example.org"));
    assert_false(is_own_origin("ftp://example.org", "example.org"));
    assert_false(is_own_origin("file://", ""));
    assert_false(is_own_origin("http:/example.org", "example.org"));
}

void names_of_a_server(void **)
{
    assert_true(is_name_of("example.org", "example.org"));
    assert_true(is_name_of("*.example.org", "www.example.org"));
    assert_true(is_name_of("*.example.org", "a.b.example.org"));
    assert_true(is_name_of(".example.org", "www.example.org"));
    assert_true(is_name_of(".example.org", "example.org"));
    assert_true(is_name_of("limits", "limits"));
}

void names_of_others(void **)
{
    assert_false(is_name_of("example.org", "evil.example"));
    assert_false(is_name_of("example.org", "www.example.org"));
    assert_false(is_name_of("example.org", "example.org.evil.example"));
    assert_false(is_name_of("example.org", "evil-example.org"));
    assert_false(is_name_of("*.example.org", "example.org"));
    assert_false(is_name_of("*.example.org", ".example.org"));
    assert_false(is_name_of("*.example.org", "evil-example.org"));
    assert_false(is_name_of("*.example.org", "www.example.org.evil.example"));
    assert_false(is_name_of(".example.org", "evil-example.org"));

    /* anybody can have a domain with a name that begins so */
    assert_false(is_name_of("www.example.*", "www.example.org"));
    assert_false(is_name_of("www.example.*", "www.example.evil.example"));
}

void what_stands_for_no_name(void **)
{
    assert_false(is_name_of("", ""));
    assert_false(is_name_of("_", "_"));
    assert_false(is_name_of("", "example.org"));
    assert_false(is_name_of("_", "example.org"));
    assert_false(is_name_of("example.org", ""));
    assert_false(is_name_of("*.example.org", ""));
    assert_false(is_name_of(".example.org", ""));
}

void lists_of_names(void **)
{
    for (const char *list : {"example.org", "a", "A_1.b-2", "a,b,example.org"})
    {
        assert_true(is_list_of_names(list));
    }

    for (const char *list :
         {"", ",", "a,", ",a", "a,,b", "a b", ".a", "a.", "a..b", "a:80", "*.a",
          "[::1]", "http://a", "a/b", "~a", "$host"})
    {
        assert_false(is_list_of_names(list));
    }
}

void names_in_a_list(void **)
{
    assert_true(is_listed("a", "a"));
    assert_true(is_listed("a,b,c", "a"));
    assert_true(is_listed("a,b,c", "b"));
    assert_true(is_listed("a,b,c", "c"));
    assert_false(is_listed("a,b,c", "d"));
    assert_false(is_listed("a,b,c", "a,b"));
    assert_false(is_listed("aa,ab", "a"));
    assert_false(is_listed("", "a"));
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(the_type_of_json),
        cmocka_unit_test(what_is_not_json),
        cmocka_unit_test(the_same_server),
        cmocka_unit_test(a_default_port_may_be_named_or_not),
        cmocka_unit_test(other_servers),
        cmocka_unit_test(what_is_no_origin),
        cmocka_unit_test(names_of_a_server),
        cmocka_unit_test(names_of_others),
        cmocka_unit_test(what_stands_for_no_name),
        cmocka_unit_test(lists_of_names),
        cmocka_unit_test(names_in_a_list),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
