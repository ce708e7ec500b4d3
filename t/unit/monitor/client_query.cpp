/* Whom the arguments of an operator's request name. */

#include "monitor/pure/sl_client_query.h"

#include "unit.h"

namespace {

using sl::ClientQuery;
using sl::Complaint;
using sl::names_zone;

/* With memory of its own size: to write past it is noticed. */
struct Read {
    explicit Read(std::string_view text) : arguments(text), room(text)
    {
        ok = sl::read_client_query(arguments, room.data(), &query, &complaint);
    }

    std::string sentence() const
    {
        std::string text{complaint.before};

        if (complaint.has_given) {
            text += "\"" + std::string(complaint.given) + "\"";
        }

        return ok ? "fine" : text + std::string(complaint.after);
    }

    std::string arguments;
    std::string room;
    ClientQuery query;
    Complaint complaint;
    bool ok;
};

void which_zone(void **)
{
    assert_true(names_zone("zone=a"));
    assert_true(names_zone("zone"));
    assert_true(names_zone("a=b&zone=a"));
    assert_true(names_zone("&&zone=&"));
    assert_false(names_zone(""));
    assert_false(names_zone("format=json"));
    assert_false(names_zone("format=zone"));
    assert_false(names_zone("zones=a&azone=b&Zone=c&a=zone=d"));
}

void a_client(void **)
{
    Read read("zone=login&key=alice");

    assert_true(read.ok);
    assert_text_equal(read.query.zone, "login");
    assert_text_equal(read.query.key, "alice");
    assert_false(read.query.is_list);

    assert_text_equal(Read("key=bob&x=y&&zone=a&").query.key, "bob");
    assert_text_equal(Read("key=a=b&zone=a").query.key, "a=b");
}

void all_with_a_ruling(void **)
{
    Read first("zone=login&overrides");

    assert_true(first.ok);
    assert_true(first.query.is_list);
    assert_text_equal(first.query.cursor, "");

    Read next("overrides=&zone=login&cursor=17%3A0");

    assert_true(next.ok);
    assert_true(next.query.is_list);
    assert_text_equal(next.query.cursor, "17:0");
}

void values_are_decoded(void **)
{
    using namespace std::string_view_literals;

    assert_text_equal(Read("zone=a&key=%41%6a%4A").query.key, "AjJ");
    assert_text_equal(Read("zone=a&key=a+b%20c%2Bd").query.key, "a b c+d");
    assert_text_equal(Read("zone=a&key=%00%ff%26%25").query.key, "\0\xff&%"sv);
    assert_text_equal(Read("zone=%61&key=b").query.zone, "a");

    for (std::string_view bad : {"%", "a%", "%4", "%4g", "%g4", "%%41", "%4%"})
    {
        Read read("zone=a&key=" + std::string(bad));

        assert_text_equal(read.sentence(),
                          "invalid escape sequence in \"" + std::string(bad)
                              + "\", must be % and two hexadecimal digits");
    }
}

void what_is_missing_or_too_much(void **)
{
    struct {
        const char *arguments;
        const char *sentence;
    } const kCases[] = {
        {"", "zone is missing, must be ?zone=ZONE&key=KEY"},
        {"key=a", "zone is missing, must be ?zone=ZONE&key=KEY"},
        {"zone=a", "key is missing, must be ?zone=ZONE&key=KEY, or "
                   "?zone=ZONE&overrides for all who have a ban or an "
                   "override"},
        {"zone=a&key=", "key is empty, must be that of a client"},
        {"zone=a&key", "key is empty, must be that of a client"},
        {"zone=a&zone=a&key=b", "the argument \"zone\" is given twice"},
        {"zone=a&key=b&key=c", "the argument \"key\" is given twice"},
        {"zone=a&overrides&overrides",
         "the argument \"overrides\" is given twice"},
        {"zone=a&overrides&cursor=1&cursor=2",
         "the argument \"cursor\" is given twice"},
        {"zone=a&key=b&overrides",
         "key and overrides are both given, must be one of them"},
        {"zone=a&key=b&cursor=1", "cursor goes with overrides alone"},
        {"zone=a&cursor=1", "cursor goes with overrides alone"},
        {"zone=a&overrides=b", "invalid overrides \"b\", must have no value"},
    };

    for (const auto &each : kCases) {
        assert_text_equal(Read(each.arguments).sentence(), each.sentence);
    }
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(which_zone),
        cmocka_unit_test(a_client),
        cmocka_unit_test(all_with_a_ruling),
        cmocka_unit_test(values_are_decoded),
        cmocka_unit_test(what_is_missing_or_too_much),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
