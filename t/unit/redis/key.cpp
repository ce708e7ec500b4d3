/* Names of what is counted: which keys stand as they are, and that no two
 * collide. */

#include "redis/pure/sl_key.h"

#include <climits>
#include <random>
#include <set>

#include "redis/pure/sl_cluster_slot.h"
#include "unit.h"

namespace {

using namespace std::string_view_literals;

using sl::Algorithm;
using sl::KeyFormat;
using sl::KeyStyle;

const KeyFormat kFormats[] = {
    KeyFormat(),
    KeyFormat(Algorithm::kPacked, 0, 60000000),
    KeyFormat(Algorithm::kBuckets, 6, 60000000),
    KeyFormat(Algorithm::kBuckets, 6, 61000000),
    KeyFormat(Algorithm::kBuckets, 66, 1000000),
    KeyFormat(Algorithm::kBuckets, 100, int64_t{31} * 24 * 3600 * 1000000),
};

constexpr std::string_view kPrefix = "rate_limit";
constexpr std::string_view kZone = "api";
constexpr std::string_view kStart = "rate_limit:api:";

std::string name_of(std::string_view zone, std::string_view key)
{
    return std::string{
        sl::redis_key(kPrefix, zone, key, KeyStyle::kPlain).view()};
}

std::string name_of(std::string_view key)
{
    return name_of(kZone, key);
}

void assert_readable(std::string_view key)
{
    assert_text_equal(name_of(key), std::string{kStart} + std::string{key});
}

void assert_hashed(std::string_view key, std::string_view digest)
{
    assert_text_equal(name_of(key),
                      std::string{kStart} + "#" + std::string{digest});
}

/* '#' and 64 digits follow the zone. */
bool is_hashed(std::string_view key)
{
    std::string name = name_of(key);

    return name.size() == kStart.size() + 1 + 64 && name[kStart.size()] == '#'
           && name.find_first_not_of("0123456789abcdef", kStart.size() + 1)
                  == name.npos;
}

std::string byte(int value)
{
    return std::string(1, static_cast<char>(value));
}

/* --- redis_key --- */

void an_ordinary_key_stands_as_it_is(void **)
{
    assert_text_equal(name_of("login", "203.0.113.9"),
                      "rate_limit:login:203.0.113.9");
    assert_readable("a");
    assert_readable("user@example.com");
    assert_readable("two words, \"quoted\" and \\ escaped");
}

void colons_in_a_key_stay(void **)
{
    assert_readable(":");
    assert_readable("2001:db8::1");
    assert_readable("b:c");
}

void utf_8_stands_as_it_is(void **)
{
    assert_readable("z\xc3\xbcrich");
    assert_readable("\xe6\x9d\xb1\xe4\xba\xac");
    assert_readable("\xf0\x9f\x94\x91");
}

void bytes_that_are_no_utf_8_stand_as_they_are(void **)
{
    assert_readable("\xff\xfe\x80");
}

void an_empty_key_is_hashed(void **)
{
    constexpr std::string_view kDigest =
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    assert_hashed("", kDigest);
    assert_hashed({}, kDigest);
}

void a_key_with_a_nul_is_hashed_as_a_whole(void **)
{
    assert_hashed(
        "a\0b"sv,
        "59b271ae1bbcb1d31d41929817f4b16fb439eb4f31520b5ad1d5ce98920a7138");
}

void a_key_with_a_newline_is_hashed(void **)
{
    assert_hashed(
        "a\nb",
        "7e18f737311b2dc3b2f269dd78396b0351f14fb66efa879f768cb23181883c78");
}

void a_key_with_braces_is_hashed(void **)
{
    assert_hashed(
        "{a}",
        "460c3a93211614ac783c0f1d1bbbcb45a6da87d6421b5c0771772588f1015ff8");
}

void a_key_that_begins_with_a_hash_mark_is_hashed(void **)
{
    assert_hashed(
        "#a",
        "302d59c4f9e75750166105ea1d8b36730ed611cbb4312c01aee763d25ee39231");
}

void a_hash_mark_further_on_stays(void **)
{
    assert_readable("a#");
    assert_readable("a#b");
}

void every_byte_is_either_readable_or_hashed_wherever_it_stands(void **)
{
    for (int ch = 0; ch < 256; ch++) {
        bool special = ch < 32 || ch == 127 || ch == '{' || ch == '}';
        std::string one = byte(ch);

        for (const std::string &key : {"a" + one, "a" + one + "b"}) {
            assert_int_equal(is_hashed(key), special);

            if (!special) {
                assert_readable(key);
            }
        }

        assert_int_equal(is_hashed(one), special || ch == '#');
        assert_int_equal(is_hashed(one + "b"), special || ch == '#');
    }
}

void a_key_of_128_bytes_is_readable(void **)
{
    assert_readable(std::string(127, 'k'));
    assert_readable(std::string(128, 'k'));
}

void a_key_of_129_bytes_is_hashed(void **)
{
    assert_hashed(
        std::string(129, 'k'),
        "9094034fb2d0ce2e407c9b260f2806ab2efb352e200722fd6296d9cf1cf7e6f5");
}

void a_key_of_8_kilobytes_is_hashed(void **)
{
    assert_hashed(
        std::string(8192, 'k'),
        "3ea03d0be39011341afc1d735ee4faf3446ecffedb9440453c95dbb3bbb0a6f7");
}

void a_special_byte_is_found_at_the_end_of_the_longest_readable_key(void **)
{
    assert_true(is_hashed(std::string(127, 'k') + "}"));
    assert_true(is_hashed(std::string(127, 'k') + '\0'));
}

void the_longest_prefix_zone_and_key_fill_a_name_exactly(void **)
{
    std::string prefix(64, 'p');
    std::string zone(64, 'z');
    std::string key(128, 'k');
    sl::RedisKey name = sl::redis_key(prefix, zone, key, KeyStyle::kPlain);

    assert_text_equal(name.view(), prefix + ":" + zone + ":" + key);

    name = sl::redis_key(prefix, zone, key, KeyStyle::kInBraces);
    assert_text_equal(name.view(), prefix + ":" + zone + ":{" + key + "}");

    KeyFormat longest(Algorithm::kBuckets, UINT_MAX, INT64_MAX);

    name = sl::redis_key(prefix, zone, key, KeyStyle::kInBraces, longest);
    assert_true(name.size <= sizeof(name.data));
    assert_text_equal(name.view(), prefix + ":" + zone
                                       + "!4294967295x9223372036854775:{" + key
                                       + "}");
}

void what_is_no_log_says_so_behind_its_zone(void **)
{
    auto named = [](const KeyFormat &format, KeyStyle style) {
        return std::string{
            sl::redis_key(kPrefix, kZone, "a", style, format).view()};
    };

    KeyFormat log(Algorithm::kLog, 0, 60000000);
    KeyFormat packed(Algorithm::kPacked, 0, 60000000);
    KeyFormat buckets(Algorithm::kBuckets, 6, 60000000);

    assert_text_equal(named(log, KeyStyle::kPlain), "rate_limit:api:a");
    assert_text_equal(named(packed, KeyStyle::kPlain), "rate_limit:api!p:a");
    assert_text_equal(named(buckets, KeyStyle::kPlain),
                      "rate_limit:api!6x60000:a");
    assert_text_equal(named(packed, KeyStyle::kInBraces),
                      "rate_limit:api!p:{a}");
    assert_text_equal(named(buckets, KeyStyle::kInBraces),
                      "rate_limit:api!6x60000:{a}");
}

void a_name_begins_with_the_prefix_and_is_the_same_otherwise(void **)
{
    for (std::string key :
         {std::string("a:b"), std::string("{}"), std::string(300, 'k'),
          std::string(), std::string("#")})
    {
        std::string rest = name_of(key).substr(kPrefix.size());

        for (std::string prefix : {"p", "staging", "a.b-c_1"}) {
            sl::RedisKey name =
                sl::redis_key(prefix, kZone, key, KeyStyle::kPlain);

            assert_text_equal(name.view(), prefix + rest);
        }
    }
}

void no_two_prefixes_share_a_name(void **)
{
    std::set<std::string> names;
    size_t count = 0;

    for (std::string prefix : {"a", "b", "ab", "a.b", "rate_limit"}) {
        for (std::string zone : {"a", "b", "ab", "b.a"}) {
            for (std::string key : {"a", "b", "a:b", "b:a", "a:a:b", "#", ""}) {
                names.insert(std::string{
                    sl::redis_key(prefix, zone, key, KeyStyle::kPlain).view()});
                count++;
            }
        }
    }

    assert_int_equal(names.size(), count);
}

void a_prefix_has_nothing_that_clusters_or_acls_read_otherwise(void **)
{
    for (char ch : "{}:*?[]\\ \t\n~%,"sv) {
        assert_false(sl::is_key_prefix("a" + byte(ch)));
    }

    assert_false(sl::is_key_prefix(""));
    assert_true(sl::is_key_prefix("rate_limit"));
    assert_true(sl::is_key_prefix("Staging-2.eu"));
    assert_true(sl::is_key_prefix(std::string(64, 'p')));
    assert_false(sl::is_key_prefix(std::string(65, 'p')));
}

void a_key_in_braces_is_the_same_otherwise(void **)
{
    for (std::string key :
         {std::string("a:b"), std::string("{}"), std::string(300, 'k'),
          std::string("#"), std::string("}x{")})
    {
        std::string plain = name_of(key).substr(kStart.size());
        sl::RedisKey name =
            sl::redis_key(kPrefix, kZone, key, KeyStyle::kInBraces);

        assert_text_equal(name.view(), std::string(kStart) + "{" + plain + "}");
    }
}

void a_hash_fits_behind_the_longest_zone(void **)
{
    std::string zone(64, 'z');

    assert_text_equal(name_of(zone, "#a"),
                      "rate_limit:" + zone
                          + ":#"
                            "302d59c4f9e75750166105ea1d8b36730ed611cbb4312c01ae"
                            "e763d25ee39231");
}

void a_hash_taken_for_a_key_is_hashed_itself(void **)
{
    std::string inner = name_of("{a}").substr(kStart.size());

    assert_true(is_hashed(inner));
    assert_true(name_of(inner) != name_of("{a}"));
}

void a_key_cannot_pretend_to_be_of_another_zone(void **)
{
    assert_text_equal(name_of("a", "b:c"), "rate_limit:a:b:c");
    assert_true(name_of("a", "b:c") != name_of("b", "c"));
    assert_true(name_of("a", "b:c") != name_of("a.b", "c"));
    assert_true(name_of("a", "b:c") != name_of("ab", "c"));
    assert_true(name_of("a", "bc") != name_of("ab", "c"));
    assert_true(name_of("a", "") != name_of("b", ""));
    assert_true(name_of("a", "#") != name_of("b", "#"));
}

/* Every text of up to `most` of these characters. */
std::set<std::string> texts_of(std::string_view characters, size_t most)
{
    std::set<std::string> all = {""};
    std::set<std::string> longest = all;

    for (size_t size = 1; size <= most; size++) {
        std::set<std::string> longer;

        for (const std::string &text : longest) {
            for (char ch : characters) {
                longer.insert(text + ch);
            }
        }

        all.insert(longer.begin(), longer.end());
        longest = longer;
    }

    return all;
}

void no_two_pairs_of_awkward_zones_and_keys_share_a_name(void **)
{
    std::set<std::string> keys = texts_of("ab:!p#{}\0\xc3"sv, 3);
    std::set<std::string> zones = texts_of("ab.", 2);
    std::set<std::string> hashes;
    std::set<std::string> names;

    zones.erase("");

    for (const std::string &key : keys) {
        hashes.insert(name_of(key).substr(kStart.size()));
    }

    /* what stands for keys in names makes good keys, too */
    keys.insert(hashes.begin(), hashes.end());

    for (const std::string &zone : zones) {
        for (const std::string &key : keys) {
            for (const KeyFormat &format : kFormats) {
                names.insert(std::string{
                    sl::redis_key(kPrefix, zone, key, KeyStyle::kPlain, format)
                        .view()});
            }
        }
    }

    assert_int_equal(zones.size(), 12);
    assert_true(keys.size() > 1000);
    assert_int_equal(names.size(),
                     zones.size() * keys.size() * std::size(kFormats));
}

void keys_of_random_bytes_get_clean_names_of_their_own(void **)
{
    std::mt19937 random(20);
    std::set<std::string> keys;
    std::set<std::string> names;

    for (int i = 0; i < 20000; i++) {
        std::string key(random() % 200, '\0');

        for (char &ch : key) {
            /* mostly readable, or next to none would be */
            uint32_t dice = random();
            ch = static_cast<char>(dice % 64 ? 32 + dice / 64 % 95 : dice / 64);
        }

        std::string name = name_of(key);

        for (unsigned char ch : name) {
            assert_true(ch >= 32 && ch != 127 && ch != '{' && ch != '}');
        }

        assert_text_equal(name.substr(0, kStart.size()), kStart);
        assert_true(name.size() > kStart.size());
        assert_true(name.size() <= kStart.size() + 128);

        keys.insert(key);
        names.insert(name);
    }

    assert_int_equal(names.size(), keys.size());
}

void long_keys_that_differ_in_one_byte_get_different_names(void **)
{
    std::set<std::string> names;
    std::string key(1000, 'k');

    for (char &ch : key) {
        ch = 'x';
        names.insert(name_of(key));
        ch = 'k';
    }

    names.insert(name_of(key));
    assert_int_equal(names.size(), key.size() + 1);
}

/* --- index_key --- */

std::string index_of(std::string_view key, KeyStyle style,
                     const KeyFormat &format = KeyFormat())
{
    sl::RedisKey counted = sl::redis_key(kPrefix, kZone, key, style, format);

    return std::string{sl::index_key(kPrefix, kZone, counted, style).view()};
}

void a_client_is_found_by_its_key_or_by_where_it_is_counted(void **)
{
    assert_text_equal(index_of("alice", KeyStyle::kInBraces),
                      "rate_limit:api!:{alice}");
    assert_text_equal(index_of("alice", KeyStyle::kPlain),
                      "rate_limit:api!:{rate_limit:api:alice}");
    assert_text_equal(index_of("alice", KeyStyle::kInBraces, kFormats[2]),
                      "rate_limit:api!:{alice}");
    assert_text_equal(index_of("alice", KeyStyle::kPlain, kFormats[1]),
                      "rate_limit:api!:{rate_limit:api!p:alice}");
    assert_text_equal(index_of("alice", KeyStyle::kPlain, kFormats[2]),
                      "rate_limit:api!:{rate_limit:api!6x60000:alice}");
}

const std::string kAwkwardKeys[] = {
    "alice",
    "a:b",
    "!",
    "!:{",
    "}",
    "{}",
    "#",
    "",
    std::string(128, 'k'),
    std::string(129, 'k'),
    "*?[a]\\",
    "a\nb",
    "\xff\xfe",
    "rate_limit:api:a",
};

/* Calls back with each of these keys, in each way that it may be counted. */
template <typename Function>
void for_each_awkward_client(Function function)
{
    for (const std::string &key : kAwkwardKeys) {
        for (KeyStyle style : {KeyStyle::kPlain, KeyStyle::kInBraces}) {
            for (const KeyFormat &format : kFormats) {
                function(key, style, format);
            }
        }
    }
}

void both_names_of_a_client_are_in_one_slot(void **)
{
    for_each_awkward_client(
        [](const std::string &key, KeyStyle style, const KeyFormat &format) {
            sl::RedisKey counted =
                sl::redis_key(kPrefix, kZone, key, style, format);

            assert_int_equal(sl::cluster_slot(index_of(key, style, format)),
                             sl::cluster_slot(counted.view()));
        });
}

void the_way_back_leads_to_the_readable_key(void **)
{
    for_each_awkward_client(
        [](const std::string &key, KeyStyle style, const KeyFormat &format) {
            char readable[sl::kMaxReadableKey];
            size_t size = sl::readable_key(key, readable);
            std::string name = index_of(key, style, format);

            assert_text_equal(sl::client_of_index(name, kPrefix, kZone, style),
                              std::string_view(readable, size));
        });
}

void the_longest_names_have_room(void **)
{
    std::string prefix(64, 'p');
    std::string zone(64, 'z');
    std::string key(128, 'k');
    std::string front = prefix + ":" + zone;

    for (KeyStyle style : {KeyStyle::kPlain, KeyStyle::kInBraces}) {
        sl::RedisKey set = sl::redis_key(prefix, zone, key, style);
        sl::IndexKey name = sl::index_key(prefix, zone, set, style);
        bool is_plain = style == KeyStyle::kPlain;

        assert_true(name.size <= sizeof(name.data));
        assert_text_equal(name.view(), front + "!:{"
                                           + (is_plain ? front + ":" : "") + key
                                           + "}");
        assert_text_equal(sl::client_of_index(name.view(), prefix, zone, style),
                          key);
    }
}

void all_of_a_zone_are_found_by_what_they_begin_with(void **)
{
    std::string pattern(sl::index_pattern(kPrefix, kZone).view());

    assert_text_equal(pattern, "rate_limit:api!:*");
    pattern.pop_back();

    for_each_awkward_client(
        [&](const std::string &key, KeyStyle style, const KeyFormat &format) {
            std::string name = index_of(key, style, format);

            assert_text_equal(name.substr(0, pattern.size()), pattern);

            /* and nothing that is counted is */
            sl::RedisKey counted =
                sl::redis_key(kPrefix, kZone, key, style, format);

            assert_true(counted.view().substr(0, pattern.size()) != pattern);
        });
}

void names_of_something_else_lead_nowhere(void **)
{
    std::string hash(64, 'a');

    for (std::string name :
         {"", "rate_limit:api!:{}", "rate_limit:api!:{a", "rate_limit:api!:a}",
          "rate_limit:api:{a}", "rate_limit:apis!:{a}", "rate_limit:ap!:{a}",
          "other:api!:{a}", "rate_limit:api!:{a}b", "rate_limit:api!:{{a}",
          "rate_limit:api!:{a}}", "rate_limit:api!:{a\nb}",
          "rate_limit:api!:{#}", "rate_limit:api!:{", "rate_limit:api!:}"})
    {
        assert_text_equal(
            sl::client_of_index(name, kPrefix, kZone, KeyStyle::kInBraces), "");
        assert_text_equal(
            sl::client_of_index(name, kPrefix, kZone, KeyStyle::kPlain), "");
    }

    for (std::string tag : {"#" + hash + "a", "#" + hash.substr(1) + "g",
                            std::string(129, 'k'), std::string("#a")})
    {
        std::string name = "rate_limit:api!:{" + tag + "}";

        assert_text_equal(
            sl::client_of_index(name, kPrefix, kZone, KeyStyle::kInBraces), "");
    }

    assert_text_equal(sl::client_of_index("rate_limit:api!:{#" + hash + "}",
                                          kPrefix, kZone, KeyStyle::kInBraces),
                      "#" + hash);

    /* another zone, one on a cluster, or no format */
    for (std::string tag :
         {"a", "rate_limit:apis:a", "rate_limit:api:", "rate_limit:api",
          "rate_limit:api!:a", "rate_limit:api!p:", "rate_limit:api!pa",
          "rate_limit:api!q:a", "rate_limit:api!pp:a", "rate_limit:api!6:a",
          "rate_limit:api!6x:a", "rate_limit:api!x6:a", "rate_limit:api!06x6:a",
          "rate_limit:api!6x06:a", "rate_limit:api!6x6x6:a",
          "rate_limit:api!!p:a", "rate_limit:apip:a"})
    {
        assert_text_equal(sl::client_of_index("rate_limit:api!:{" + tag + "}",
                                              kPrefix, kZone, KeyStyle::kPlain),
                          "");
    }
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(an_ordinary_key_stands_as_it_is),
        cmocka_unit_test(colons_in_a_key_stay),
        cmocka_unit_test(utf_8_stands_as_it_is),
        cmocka_unit_test(bytes_that_are_no_utf_8_stand_as_they_are),
        cmocka_unit_test(an_empty_key_is_hashed),
        cmocka_unit_test(a_key_with_a_nul_is_hashed_as_a_whole),
        cmocka_unit_test(a_key_with_a_newline_is_hashed),
        cmocka_unit_test(a_key_with_braces_is_hashed),
        cmocka_unit_test(a_key_that_begins_with_a_hash_mark_is_hashed),
        cmocka_unit_test(a_hash_mark_further_on_stays),
        cmocka_unit_test(
            every_byte_is_either_readable_or_hashed_wherever_it_stands),
        cmocka_unit_test(a_key_of_128_bytes_is_readable),
        cmocka_unit_test(a_key_of_129_bytes_is_hashed),
        cmocka_unit_test(a_key_of_8_kilobytes_is_hashed),
        cmocka_unit_test(
            a_special_byte_is_found_at_the_end_of_the_longest_readable_key),
        cmocka_unit_test(the_longest_prefix_zone_and_key_fill_a_name_exactly),
        cmocka_unit_test(what_is_no_log_says_so_behind_its_zone),
        cmocka_unit_test(
            a_name_begins_with_the_prefix_and_is_the_same_otherwise),
        cmocka_unit_test(no_two_prefixes_share_a_name),
        cmocka_unit_test(
            a_prefix_has_nothing_that_clusters_or_acls_read_otherwise),
        cmocka_unit_test(a_key_in_braces_is_the_same_otherwise),
        cmocka_unit_test(a_hash_fits_behind_the_longest_zone),
        cmocka_unit_test(a_hash_taken_for_a_key_is_hashed_itself),
        cmocka_unit_test(a_key_cannot_pretend_to_be_of_another_zone),
        cmocka_unit_test(no_two_pairs_of_awkward_zones_and_keys_share_a_name),
        cmocka_unit_test(keys_of_random_bytes_get_clean_names_of_their_own),
        cmocka_unit_test(long_keys_that_differ_in_one_byte_get_different_names),
        cmocka_unit_test(
            a_client_is_found_by_its_key_or_by_where_it_is_counted),
        cmocka_unit_test(both_names_of_a_client_are_in_one_slot),
        cmocka_unit_test(the_way_back_leads_to_the_readable_key),
        cmocka_unit_test(the_longest_names_have_room),
        cmocka_unit_test(all_of_a_zone_are_found_by_what_they_begin_with),
        cmocka_unit_test(names_of_something_else_lead_nowhere),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
