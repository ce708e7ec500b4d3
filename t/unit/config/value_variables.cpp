/* Which variables a value has, who writes them, and when they are known. */

#include "config/pure/sl_value_variables.h"

#include <string>

#include "unit.h"

namespace {

using sl::can_be_left_out;
using sl::find_made_up;
using sl::find_variable;
using sl::has_variable;
using sl::is_of_response;

/* All names, with a space behind each. */
std::string names_in(std::string_view text)
{
    std::string names;

    find_variable(text, [&](std::string_view name) {
        names.append(name).append(" ");
        return false;
    });

    return names;
}

void names_of_variables(void **)
{
    assert_string_equal(names_in("").c_str(), "");
    assert_string_equal(names_in("text").c_str(), "");
    assert_string_equal(names_in("$uri").c_str(), "uri ");
    assert_string_equal(names_in("${uri}").c_str(), "uri ");
    assert_string_equal(names_in("a$b-$c_d.e").c_str(), "b c_d ");
    assert_string_equal(names_in("$a$b${c}d").c_str(), "a b c ");
    assert_string_equal(names_in("${a}${b}").c_str(), "a b ");
    assert_string_equal(names_in("$1").c_str(), "1 ");
}

/* nginx refuses these, but they must come to an end. */
void what_is_no_variable(void **)
{
    assert_string_equal(names_in("$").c_str(), "");
    assert_string_equal(names_in("$$").c_str(), "");
    assert_string_equal(names_in("a$-").c_str(), "");
    assert_string_equal(names_in("${}").c_str(), "");
    assert_string_equal(names_in("${a").c_str(), "a ");
    assert_string_equal(names_in("${").c_str(), "");
}

void the_first_that_is_looked_for(void **)
{
    auto is_long = [](std::string_view name) {
        return name.size() > 2;
    };

    assert_true(find_variable("$a$bcd$efg", is_long) == "bcd");
    assert_true(find_variable("$a$b", is_long).empty());

    assert_true(has_variable("a$uri", "uri"));
    assert_true(has_variable("${URI}", "uri"));
    assert_false(has_variable("uri", "uri"));
    assert_false(has_variable("$uri2", "uri"));
}

void what_only_the_response_knows(void **)
{
    for (const char *name :
         {"status", "Status", "bytes_sent", "request_time", "sent_http_x",
          "upstream_http_x_tokens", "upstream_status", "upstream_cookie_a",
          "upstream_cache_etag", "request_body", "request_body_file",
          "gzip_ratio"})
    {
        assert_true(is_of_response(name));
    }

    /* the last ones may be somebody's map */
    for (const char *name :
         {"uri", "request", "request_length", "http_x", "statuses",
          "upstream_pool", "upstream", "upstream_cache", "sent_http"})
    {
        assert_false(is_of_response(name));
    }
}

void what_a_client_can_leave_out(void **)
{
    for (const char *value :
         {"$cookie_x", "$arg_x", "$http_x", "$args", "$query_string",
          "$content_type", "$content_length", "$is_args", "$ssl_server_name",
          "${HTTP_X}", "$arg_a$cookie_b", "$is_args${args}", "$uid_got",
          "$ssl_session_id", "$ssl_client_fingerprint", "$ssl_client_s_dn",
          "$ssl_client_i_dn_legacy"})
    {
        assert_true(can_be_left_out(value));
        assert_true(find_made_up(value).empty());
    }
}

void what_a_client_can_make_up(void **)
{
    struct {
        const char *value;
        std::string_view made_up;
    } cases[] = {
        {"$request_uri", "request_uri"},
        {"${request}", "request"},
        {"$Request_URI", "Request_URI"},
        {"$request_uri$cookie_x", "request_uri"},
        {"$http_x$request_uri", "http_x"},
        {"$proxy_add_x_forwarded_for", "proxy_add_x_forwarded_for"},
        {"$host-$request_uri", "request_uri"},
        {"$request_uri:", "request_uri"},
        {"$remote_addr$http_user_agent", "http_user_agent"},
        {"$sliding_limit_addr${arg_x}", "arg_x"},
        {"$cookie_x$remote_addr", "cookie_x"},
        {"$ssl_client_s_dn$content_type-", "content_type"},
        {"a$args", "args"},
        {"$args-", "args"},
        {"user:$cookie_x", "cookie_x"},
        {"$arg_a:$arg_b", "arg_a"},
        {"$remote_addr$uid_got", "uid_got"},
        {"$remote_addr$ssl_session_id", "ssl_session_id"},
    };

    for (const auto &c : cases) {
        assert_true(find_made_up(c.value) == c.made_up);
        assert_false(can_be_left_out(c.value));
    }
}

void what_is_not_the_clients_alone(void **)
{
    for (const char *value :
         {"", "text", "arg_x", "$remote_addr", "$remote_user", "$uri",
          "$host$uri", "request_uri", "$request_method", "$request_id",
          "$argsx", "$cookie", "$uri$is_args", "$ssl_client_verify",
          "$remote_addr$ssl_client_s_dn"})
    {
        assert_false(can_be_left_out(value));
        assert_true(find_made_up(value).empty());
    }
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(names_of_variables),
        cmocka_unit_test(what_is_no_variable),
        cmocka_unit_test(the_first_that_is_looked_for),
        cmocka_unit_test(what_only_the_response_knows),
        cmocka_unit_test(what_a_client_can_leave_out),
        cmocka_unit_test(what_a_client_can_make_up),
        cmocka_unit_test(what_is_not_the_clients_alone),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
