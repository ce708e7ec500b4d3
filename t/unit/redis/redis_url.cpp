/* Addresses of a Redis: taken apart, refused, stripped of passwords, decoded.
 */

#include "redis/pure/sl_redis_url.h"

#include <cstdio>
#include <vector>

#include "unit.h"

namespace {

using namespace std::string_view_literals;

using sl::RedisUrl;

constexpr size_t kBad = std::string_view::npos;

/* --- parse_redis_url --- */

struct Parts {
    std::string_view socket;
    std::string_view addresses;
    std::string_view user;
    std::string_view password;
    std::string_view db;
    std::string_view primary;
};

void assert_parts(std::string_view text, const Parts &parts)
{
    RedisUrl url;

    assert_null(sl::parse_redis_url(text, &url));
    assert_text_equal(url.socket, parts.socket);
    assert_text_equal(url.addresses, parts.addresses);
    assert_text_equal(url.primary, parts.primary);
    assert_text_equal(url.user, parts.user);
    assert_text_equal(url.password, parts.password);
    assert_text_equal(url.db, parts.db);
}

void assert_refused(std::string_view text, std::string_view why)
{
    RedisUrl url;
    const char *error = sl::parse_redis_url(text, &url);

    assert_non_null(error);
    assert_text_equal(error, why);
}

void a_host_alone_is_enough(void **)
{
    assert_parts("redis://localhost", {"", "localhost", "", "", "", ""});
    assert_parts("redis://h", {"", "h", "", "", "", ""});
}

void a_port_belongs_to_the_address(void **)
{
    assert_parts("redis://127.0.0.1:6379",
                 {"", "127.0.0.1:6379", "", "", "", ""});
}

void a_database_follows_the_slash(void **)
{
    assert_parts("redis://redis.local/3", {"", "redis.local", "", "", "3", ""});
    assert_parts("redis://redis.local:6380/15",
                 {"", "redis.local:6380", "", "", "15", ""});
}

void a_slash_alone_names_no_database(void **)
{
    assert_parts("redis://redis.local/", {"", "redis.local", "", "", "", ""});
}

void all_behind_the_first_slash_is_the_database(void **)
{
    assert_parts("redis://h/1/2", {"", "h", "", "", "1/2", ""});
    assert_parts("redis://u:p@h//2", {"", "h", "u", "p", "/2", ""});
}

void a_password_may_contain_raw_slashes(void **)
{
    assert_parts("redis://u:pa/ss@h/1", {"", "h", "u", "pa/ss", "1", ""});
    assert_parts("redis://:/@h", {"", "h", "", "/", "", ""});
}

void an_empty_userinfo_is_none(void **)
{
    assert_parts("redis://@h", {"", "h", "", "", "", ""});
    assert_parts("redis://unix:p@h", {"", "h", "unix", "p", "", ""});
}

void an_ipv6_address_keeps_its_brackets(void **)
{
    assert_parts("redis://[::1]", {"", "[::1]", "", "", "", ""});
    assert_parts("redis://[2001:db8::1]:6379/2",
                 {"", "[2001:db8::1]:6379", "", "", "2", ""});
    assert_parts("redis://u:p@[::1]:6379",
                 {"", "[::1]:6379", "u", "p", "", ""});
    assert_parts("redis://u@[::1]", {"", "[::1]", "u", "", "", ""});
}

void user_and_password_stand_before_the_host(void **)
{
    assert_parts("redis://web:secret@redis.local:6379/1",
                 {"", "redis.local:6379", "web", "secret", "1", ""});
}

void a_user_needs_no_password(void **)
{
    assert_parts("redis://web@redis.local",
                 {"", "redis.local", "web", "", "", ""});
    assert_parts("redis://web:@redis.local",
                 {"", "redis.local", "web", "", "", ""});
}

void a_password_needs_no_user(void **)
{
    assert_parts("redis://:secret@redis.local",
                 {"", "redis.local", "", "secret", "", ""});
    assert_parts("redis://:@redis.local", {"", "redis.local", "", "", "", ""});
}

void a_password_may_contain_at_signs_and_colons(void **)
{
    assert_parts("redis://u:p@ss@h:1", {"", "h:1", "u", "p@ss", "", ""});
    assert_parts("redis://u:p:ss@h", {"", "h", "u", "p:ss", "", ""});
    assert_parts("redis://u::@:@@h/2", {"", "h", "u", ":@:@", "2", ""});
    assert_parts("redis://:@@h", {"", "h", "", "@", "", ""});
}

void percent_signs_stay_as_they_are(void **)
{
    assert_parts("redis://a%40b:c%2Fd@h", {"", "h", "a%40b", "c%2Fd", "", ""});
    assert_parts("redis://u:%zz@h", {"", "h", "u", "%zz", "", ""});
}

void a_socket_is_a_path(void **)
{
    assert_parts("unix:/run/redis.sock",
                 {"/run/redis.sock", "", "", "", "", ""});
    assert_parts("unix:r", {"r", "", "", "", "", ""});
}

void nothing_in_a_path_is_special(void **)
{
    assert_parts("unix:/a/u:p@h:1/2", {"/a/u:p@h:1/2", "", "", "", "", ""});
    assert_parts("unix:redis://u:p@h/2",
                 {"redis://u:p@h/2", "", "", "", "", ""});
    assert_parts("unix:///run/redis.sock",
                 {"///run/redis.sock", "", "", "", "", ""});
}

void the_parts_point_into_the_text(void **)
{
    std::string text = "redis://user:password@host:1/2";
    RedisUrl url;

    assert_null(sl::parse_redis_url(text, &url));
    assert_ptr_equal(url.user.data(), text.data() + 8);
    assert_ptr_equal(url.password.data(), text.data() + 13);
    assert_ptr_equal(url.addresses.data(), text.data() + 22);
    assert_ptr_equal(url.db.data(), text.data() + 29);
}

void nothing_is_left_of_an_earlier_url(void **)
{
    RedisUrl url;

    assert_null(sl::parse_redis_url("redis://u:p@h/1", &url));
    assert_null(sl::parse_redis_url("unix:/s", &url));
    assert_text_equal(url.addresses, "");
    assert_text_equal(url.user, "");
    assert_text_equal(url.password, "");
    assert_text_equal(url.db, "");

    assert_null(sl::parse_redis_url("redis://h", &url));
    assert_text_equal(url.socket, "");
}

void only_rediss_asks_for_tls(void **)
{
    RedisUrl url;

    assert_parts("rediss://u:p@h:1/2", {"", "h:1", "u", "p", "2", ""});
    assert_null(sl::parse_redis_url("rediss://h", &url));
    assert_true(url.scheme == sl::RedisScheme::kRedis);
    assert_true(url.has_tls);

    for (std::string_view text :
         {"redis://h", "sentinel://h/m", "cluster://h", "unix:/s"})
    {
        assert_null(sl::parse_redis_url(text, &url));
        assert_false(url.has_tls);
    }
}

void other_schemes_are_refused(void **)
{
    for (std::string_view text :
         {"", "redis", "redis:", "redis:/", "redis:/h", "rediss:/h",
          "redisss://h", "http://h", "REDIS://h", "Unix:/s", "unix/s", "unix",
          " redis://h", "//h", "h:6379", "/run/redis.sock", ""})
    {
        assert_refused(text, "must start with redis://, rediss://, "
                             "sentinel://, cluster:// or unix:");
    }
}

void a_missing_host_is_refused(void **)
{
    for (std::string_view text :
         {"redis://", "redis:///", "redis:///1", "redis://u:p@",
          "redis://u:p@/1", "redis://u@", "redis://:p@/"})
    {
        assert_refused(text, "has no host, as in redis://127.0.0.1:6379");
    }
}

void a_missing_path_is_refused(void **)
{
    const char *expected =
        "must be unix: and a path, as in unix:/run/redis.sock";

    assert_refused("unix:", expected);
    assert_refused("unix://user:secret@/run/redis.sock", expected);
}

void the_text_ends_where_its_size_says(void **)
{
    std::string_view text = "redis://h:1/23@x";

    assert_refused(text.substr(0, 8),
                   "has no host, as in redis://127.0.0.1:6379");
    assert_parts(text.substr(0, 9), {"", "h", "", "", "", ""});
    assert_parts(text.substr(0, 11), {"", "h:1", "", "", "", ""});
    assert_parts(text.substr(0, 13), {"", "h:1", "", "", "2", ""});
}

void sentinels_are_listed_and_name_the_primary(void **)
{
    assert_parts("sentinel://a:1,b,[::1]:3/mymaster",
                 {"", "a:1,b,[::1]:3", "", "", "", "mymaster"});
    assert_parts("sentinel://u:p@a:1/mymaster/4",
                 {"", "a:1", "u", "p", "4", "mymaster"});
    assert_refused("sentinel://a:1", "does not say what Sentinels call the "
                                     "primary, as in "
                                     "sentinel://10.0.0.1:26379/mymaster");
    assert_refused("sentinel://a:1/", "does not say what Sentinels call the "
                                      "primary, as in "
                                      "sentinel://10.0.0.1:26379/mymaster");
    assert_refused("sentinel:///mymaster",
                   "has no host, as in "
                   "sentinel://10.0.0.1:26379,10.0.0.2:26379/mymaster");
}

void servers_of_a_cluster_are_listed(void **)
{
    assert_parts("cluster://a:1,b:2", {"", "a:1,b:2", "", "", "", ""});
    assert_parts("cluster://:p@a:1", {"", "a:1", "", "p", "", ""});
    assert_refused("cluster://", "has no host, as in "
                                 "cluster://10.0.0.1:6379,10.0.0.2:6379");
    assert_refused("cluster://a:1/2",
                   "has a database, but a cluster has only one");
}

void the_scheme_is_told(void **)
{
    RedisUrl url;

    assert_null(sl::parse_redis_url("redis://h", &url));
    assert_true(url.scheme == sl::RedisScheme::kRedis);
    assert_null(sl::parse_redis_url("unix:/s", &url));
    assert_true(url.scheme == sl::RedisScheme::kUnix);
    assert_null(sl::parse_redis_url("sentinel://h/m", &url));
    assert_true(url.scheme == sl::RedisScheme::kSentinel);
    assert_null(sl::parse_redis_url("cluster://h", &url));
    assert_true(url.scheme == sl::RedisScheme::kCluster);
}

/* --- find_password --- */

void assert_password(std::string_view text, std::string_view password)
{
    std::string_view found = sl::find_password(text);

    assert_text_equal(found, password);

    if (!found.empty()) {
        assert_true(found.data() >= text.data());
        assert_true(found.data() + found.size() <= text.data() + text.size());
    }
}

void the_password_of_a_valid_url_is_found(void **)
{
    assert_password("redis://u:secret@h:1/2", "secret");
    assert_password("redis://:secret@h", "secret");
    assert_password("redis://u:a@b:c@h", "a@b:c");
    assert_password("redis://u:p@[::1]:6379", "p");
}

void the_password_is_found_where_it_stands(void **)
{
    std::string text = "redis://p:p@p:p/p";

    assert_ptr_equal(sl::find_password(text).data(), text.data() + 10);
    assert_int_equal(sl::find_password(text).size(), 1);
}

void the_password_of_an_invalid_url_is_found_too(void **)
{
    assert_password("rediss://u:secret@h", "secret");
    assert_password("http://u:secret@h/x", "secret");
    assert_password("://u:secret@h", "secret");
    assert_password("redis://u:secret@", "secret");
    assert_password("redis://u:secret@/1", "secret");
    assert_password("redis://u:secret@h:port/db", "secret");
    assert_password("redis://u:%zz@h", "%zz");
}

void a_url_without_a_password_has_none(void **)
{
    for (std::string_view text :
         {"", "redis", "://", "redis://", "redis://h", "redis://h:6379/1",
          "redis://u@h", "redis://u:@h", "redis://[::1]:6379",
          "redis://u@[::1]:1", "redis://@h:1", "unix:/run/redis.sock",
          "unix:/a:b@c", ""})
    {
        assert_password(text, "");
    }
}

void a_password_is_found_whatever_it_is_made_of(void **)
{
    assert_password("redis://u:pa/ss@h", "pa/ss");
    assert_password("redis://u:p@a:b@h:1/2", "p@a:b");
    assert_password("redis://u:p://q@h", "p://q");
    assert_password("unix://u:p@/run/redis.sock", "p");
}

void without_a_scheme_too_much_is_hidden_rather_than_too_little(void **)
{
    assert_password("secret@h", "secret");
    assert_password("u:secret@h:6379", "u:secret");
    assert_password("redis:/u:secret@h", "redis:/u:secret");
}

/* --- percent_decode --- */

/* Into memory of just the size needed, so that use of more is noticed. */
size_t decode(std::string_view text, std::string *decoded)
{
    std::vector<char> from(text.begin(), text.end());
    std::vector<char> to(text.size());
    size_t size = sl::percent_decode({from.data(), from.size()}, to.data());

    if (size != kBad) {
        decoded->assign(to.data(), size);
    }

    return size;
}

void assert_decoded(std::string_view text, std::string_view expected)
{
    std::string decoded;

    assert_int_equal(decode(text, &decoded), expected.size());
    assert_text_equal(decoded, expected);
}

void assert_not_decoded(std::string_view text)
{
    std::string decoded;

    assert_true(decode(text, &decoded) == kBad);
}

void text_without_percent_signs_is_copied(void **)
{
    assert_decoded("", "");
    assert_decoded("a", "a");
    assert_decoded("a+b c:@/\xff", "a+b c:@/\xff");
    assert_decoded("a\0b"sv, "a\0b"sv);
}

void two_hex_digits_are_decoded_wherever_they_stand(void **)
{
    assert_decoded("%41", "A");
    assert_decoded("%41b", "Ab");
    assert_decoded("a%42", "aB");
    assert_decoded("a%42c", "aBc");
    assert_decoded("%41%42", "AB");
    assert_decoded("p%40ss%3aw%2Frd", "p@ss:w/rd");
}

void digits_that_follow_a_code_are_text(void **)
{
    assert_decoded("%4142", "A42");
}

void text_is_decoded_once_only(void **)
{
    assert_decoded("%2541", "%41");
    assert_decoded("%25%34%31", "%41");
}

void every_byte_can_be_encoded_in_either_case(void **)
{
    for (int value = 0; value < 256; value++) {
        std::string expected(1, static_cast<char>(value));

        for (const char *format : {"%%%02x", "%%%02X"}) {
            char text[4];
            snprintf(text, sizeof(text), format, value);
            assert_decoded(text, expected);
        }
    }

    assert_decoded("%aB%Ab", "\xab\xab");
}

void a_percent_sign_at_the_end_is_an_error(void **)
{
    assert_not_decoded("%");
    assert_not_decoded("%4");
    assert_not_decoded("abc%");
    assert_not_decoded("abc%4");
    assert_not_decoded("%41%");
    assert_not_decoded("%41%4");
}

void a_percent_sign_before_anything_but_hex_digits_is_an_error(void **)
{
    constexpr std::string_view kHex = "0123456789abcdefABCDEF";

    for (int value = 0; value < 256; value++) {
        std::string ch(1, static_cast<char>(value));

        if (kHex.find(ch) == kHex.npos) {
            assert_not_decoded("%" + ch + "0");
            assert_not_decoded("%0" + ch);
            assert_not_decoded("a%41%" + ch + ch + "z");
        }
    }
}

void a_doubled_percent_sign_is_an_error(void **)
{
    assert_not_decoded("%%");
    assert_not_decoded("%%41");
}

void the_text_to_decode_ends_where_its_size_says(void **)
{
    std::string_view text = "%41%42";
    char to[6];

    assert_int_equal(sl::percent_decode(text.substr(0, 3), to), 1);
    assert_true(sl::percent_decode(text.substr(0, 2), to) == kBad);
    assert_true(sl::percent_decode(text.substr(0, 5), to) == kBad);
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_host_alone_is_enough),
        cmocka_unit_test(a_port_belongs_to_the_address),
        cmocka_unit_test(sentinels_are_listed_and_name_the_primary),
        cmocka_unit_test(servers_of_a_cluster_are_listed),
        cmocka_unit_test(the_scheme_is_told),
        cmocka_unit_test(a_database_follows_the_slash),
        cmocka_unit_test(a_slash_alone_names_no_database),
        cmocka_unit_test(all_behind_the_first_slash_is_the_database),
        cmocka_unit_test(a_password_may_contain_raw_slashes),
        cmocka_unit_test(an_empty_userinfo_is_none),
        cmocka_unit_test(an_ipv6_address_keeps_its_brackets),
        cmocka_unit_test(user_and_password_stand_before_the_host),
        cmocka_unit_test(a_user_needs_no_password),
        cmocka_unit_test(a_password_needs_no_user),
        cmocka_unit_test(a_password_may_contain_at_signs_and_colons),
        cmocka_unit_test(percent_signs_stay_as_they_are),
        cmocka_unit_test(a_socket_is_a_path),
        cmocka_unit_test(nothing_in_a_path_is_special),
        cmocka_unit_test(the_parts_point_into_the_text),
        cmocka_unit_test(nothing_is_left_of_an_earlier_url),
        cmocka_unit_test(only_rediss_asks_for_tls),
        cmocka_unit_test(other_schemes_are_refused),
        cmocka_unit_test(a_missing_host_is_refused),
        cmocka_unit_test(a_missing_path_is_refused),
        cmocka_unit_test(the_text_ends_where_its_size_says),
        cmocka_unit_test(the_password_of_a_valid_url_is_found),
        cmocka_unit_test(the_password_is_found_where_it_stands),
        cmocka_unit_test(the_password_of_an_invalid_url_is_found_too),
        cmocka_unit_test(a_url_without_a_password_has_none),
        cmocka_unit_test(a_password_is_found_whatever_it_is_made_of),
        cmocka_unit_test(
            without_a_scheme_too_much_is_hidden_rather_than_too_little),
        cmocka_unit_test(text_without_percent_signs_is_copied),
        cmocka_unit_test(two_hex_digits_are_decoded_wherever_they_stand),
        cmocka_unit_test(digits_that_follow_a_code_are_text),
        cmocka_unit_test(text_is_decoded_once_only),
        cmocka_unit_test(every_byte_can_be_encoded_in_either_case),
        cmocka_unit_test(a_percent_sign_at_the_end_is_an_error),
        cmocka_unit_test(
            a_percent_sign_before_anything_but_hex_digits_is_an_error),
        cmocka_unit_test(a_doubled_percent_sign_is_an_error),
        cmocka_unit_test(the_text_to_decode_ends_where_its_size_says),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
