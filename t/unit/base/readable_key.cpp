/* A client's key as people may read it. */

#include "base/pure/sl_readable_key.h"

#include <set>
#include <string>

#include "unit.h"

namespace {

std::string readable(std::string_view key)
{
    char text[sl::kMaxReadableKey];

    return {text, sl::readable_key(key, text)};
}

/* Of nothing. */
const char kEmptyHash[] =
    "#e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

void an_ordinary_key_stays_as_it_is(void **)
{
    for (std::string key :
         {"a", "192.0.2.1", "2001:db8::", "alice@example.com", "a b", "a#b",
          "gr\xc3\xbc\xc3\x9f", "\xff", "[a]:%\"'<>\\"})
    {
        assert_text_equal(readable(key), key);
        assert_true(sl::is_whole_key(readable(key)));
    }
}

void any_other_is_a_hash(void **)
{
    assert_text_equal(readable(""), kEmptyHash);

    for (std::string key :
         {std::string("#"), std::string("#alice"), std::string("{a}"),
          std::string("a{"), std::string("}"), std::string("a\n"),
          std::string("\x7f"), std::string("\x1f"), std::string("a\0b", 3),
          std::string(129, 'a')})
    {
        std::string text = readable(key);

        assert_int_equal(text.size(), 65);
        assert_int_equal(text[0], '#');
        assert_false(sl::is_whole_key(text));
    }
}

void the_longest_that_is_ordinary_has_128_bytes(void **)
{
    std::string longest(sl::kMaxReadableKey, 'a');

    assert_text_equal(readable(longest), longest);
    assert_text_equal(readable(longest).substr(0, 1), "a");
    assert_text_equal(readable(longest + "a").substr(0, 1), "#");
}

void what_looks_like_a_hash_is_hashed_once_more(void **)
{
    std::string text = readable("");

    assert_text_equal(text, kEmptyHash);
    assert_true(readable(text) != text);
    assert_int_equal(readable(text)[0], '#');
}

void no_two_keys_share_a_text(void **)
{
    std::set<std::string> texts;
    size_t keys = 0;

    for (int first = 0; first < 256; first++) {
        for (int second = -1; second < 256; second++) {
            std::string key(1, static_cast<char>(first));

            if (second >= 0) {
                key += static_cast<char>(second);
            }

            texts.insert(readable(key));
            texts.insert(readable(readable(key)));
            keys += 1 + (readable(readable(key)) != readable(key));
        }
    }

    assert_int_equal(texts.size(), keys);
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(an_ordinary_key_stays_as_it_is),
        cmocka_unit_test(any_other_is_a_hash),
        cmocka_unit_test(the_longest_that_is_ordinary_has_128_bytes),
        cmocka_unit_test(what_looks_like_a_hash_is_hashed_once_more),
        cmocka_unit_test(no_two_keys_share_a_text),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
