/* What a body says is to be changed, and what is wrong with it. */

#include "monitor/pure/sl_change_body.h"

#include "unit.h"

namespace {

using sl::Act;
using sl::Complaint;
using sl::Intervention;
using sl::read_duration;

constexpr int64_t kSecond = 1000000;
constexpr int64_t kDay = 24 * 60 * 60 * kSecond;

/* With memory of its own size: to read past it is noticed. */
struct Read {
    explicit Read(std::string_view text) : body(text)
    {
        ok = sl::read_change(body, &change, &complaint);
    }

    std::string sentence() const
    {
        std::string text{complaint.before};

        if (complaint.has_given) {
            text += "\"" + std::string(complaint.given) + "\"";
        }

        return ok ? "fine" : text + std::string(complaint.after);
    }

    std::string body;
    Intervention change;
    Complaint complaint;
    bool ok;
};

void a_ban(void **)
{
    Read read(R"({"ban":"15m"})");

    assert_true(read.ok);
    assert_true(read.change.act == Act::kBan);
    assert_int_equal(read.change.for_us, 900 * kSecond);
    assert_int_equal(read.change.max, sl::kOwnMax);

    Read lifted(" { \"ban\" : null }\n");

    assert_true(lifted.ok);
    assert_true(lifted.change.act == Act::kBan);
    assert_int_equal(lifted.change.for_us, 0);
}

void an_override(void **)
{
    Read read(R"({"max":500,"for":"1d"})");

    assert_true(read.ok);
    assert_true(read.change.act == Act::kOverride);
    assert_int_equal(read.change.max, 500);
    assert_int_equal(read.change.for_us, kDay);

    Read other("\t{\"for\":\"1s\"\r\n,\"max\":1000000000000000}");

    assert_true(other.ok);
    assert_int_equal(other.change.max, 1000000000000000);
    assert_int_equal(other.change.for_us, kSecond);

    Read lifted(R"({"max":null})");

    assert_true(lifted.ok);
    assert_true(lifted.change.act == Act::kOverride);
    assert_int_equal(lifted.change.max, sl::kOwnMax);
    assert_int_equal(lifted.change.for_us, 0);
}

void times(void **)
{
    assert_int_equal(read_duration("1s"), kSecond);
    assert_int_equal(read_duration("90"), 90 * kSecond);
    assert_int_equal(read_duration("1h30m"), 5400 * kSecond);
    assert_int_equal(read_duration("1h30"), 3630 * kSecond);
    assert_int_equal(read_duration("1d 2h  3m"), (26 * 3600 + 180) * kSecond);
    assert_int_equal(read_duration("1M2w3d"), 47 * kDay);
    assert_int_equal(read_duration("366d"), 366 * kDay);
    assert_int_equal(read_duration("1y1d"), 366 * kDay);
    assert_int_equal(read_duration("0s"), 0);

    for (const char *bad : {"",
                            " ",
                            "s",
                            "1x",
                            "1S",
                            "-1s",
                            "+1s",
                            "1.5s",
                            "1ms",
                            "1s1m",
                            "1m1m",
                            "1s ",
                            " 1s",
                            "1 s",
                            "1ss",
                            "1h,30m",
                            "1s1",
                            "1\\u0073",
                            "367d",
                            "1y2d",
                            "9999999999s",
                            "99999999999999999999d",
                            "999999999y"})
    {
        assert_int_equal(read_duration(bad), -1);
    }
}

constexpr std::string_view kBans =
    R"(, must be a string with a time from 1s to 366d, for example "15m", )"
    R"(or null to lift a ban)";
constexpr std::string_view kFors =
    R"(, must be a string with a time from 1s to 366d, for example "1d")";
constexpr std::string_view kMaxes =
    ", must be a whole number from 1 to 1000000000000000, or null to lift an "
    "override";

void values_that_are_not_right(void **)
{
    struct {
        const char *value;
        const char *shown;
    } const kValues[] = {
        {R"("")", ""},
        {R"("0s")", "0s"},
        {R"("367d")", "367d"},
        {R"("1ms")", "1ms"},
        {"15", "15"},
        {"true", "true"},
        {"{}", "{}"},
        {"[\"1s\"]", "[\"1s\"]"},
        {R"("15m\u0000")", R"(15m\u0000)"},
        {R"({"a":["}","\""]})", R"({"a":["}","\""]})"},
    };

    for (const auto &each : kValues) {
        std::string value = each.value;
        std::string shown = "\"" + std::string(each.shown) + "\"";

        assert_text_equal(Read("{\"ban\":" + value + "}").sentence(),
                          "invalid ban " + shown + std::string(kBans));
        assert_text_equal(Read("{\"max\":1,\"for\":" + value + "}").sentence(),
                          "invalid for " + shown + std::string(kFors));
    }

    for (const char *value : {"-1", "1.5", "1.0", "1e3", "1000000000000001",
                              "99999999999999999999", "true", "[1]"})
    {
        assert_text_equal(
            Read("{\"for\":\"1d\",\"max\":" + std::string(value) + "}")
                .sentence(),
            "invalid max \"" + std::string(value) + "\"" + std::string(kMaxes));
    }

    assert_text_equal(Read(R"({"max":"500","for":"1d"})").sentence(),
                      "invalid max \"500\"" + std::string(kMaxes));
    assert_text_equal(
        Read(R"({"max":0,"for":"1d"})").sentence(),
        R"(invalid max "0", must be 1 or more; use a ban, {"ban":"15m"}, )"
        R"(to let nothing pass)");
    assert_text_equal(Read(R"({"max":1,"for":null})").sentence(),
                      "invalid for \"null\"" + std::string(kFors));
}

void fields_that_do_not_go_together(void **)
{
    constexpr std::string_view kNeither =
        R"(, must be {"ban":"15m"}, {"ban":null}, {"max":500,"for":"1d"} )"
        R"(or {"max":null})";

    struct {
        std::string_view body;
        std::string sentence;
    } const kCases[] = {
        {"{}",
         R"(neither "ban" nor "max" is given: "{}")" + std::string(kNeither)},
        {R"({"for":"1d"})", R"(neither "ban" nor "max" is given: )"
                            R"("{"for":"1d"}")"
                                + std::string(kNeither)},
        {R"({"ban":"1s","max":1,"for":"1s"})",
         R"("ban" and "max" are both given, must be one at a time)"},
        {R"({"ban":null,"max":null})",
         R"("ban" and "max" are both given, must be one at a time)"},
        {R"({"ban":"1s","for":"1s"})",
         R"("for" goes with "max" alone, must be {"ban":"15m"} for a ban)"},
        {R"({"max":null,"for":"1s"})",
         R"("for" does not go with a max of null, must be {"max":null} to )"
         R"(lift an override)"},
        {R"({"max":5})",
         R"("for" is missing: how long the max is to hold, from 1s to 366d, )"
         R"(as in {"max":500,"for":"1d"})"},
        {R"({"ban":"1s","ban":"1s"})", R"(the field "ban" is given twice)"},
        {R"({"ban":null,"ban":null})", R"(the field "ban" is given twice)"},
        {R"({"max":1,"for":"1s","for":"1s"})",
         R"(the field "for" is given twice)"},
        {R"({"bann":"1s"})",
         R"(unknown field "bann", must be "ban", "max" or "for")"},
        {R"({"Ban":"1s"})",
         R"(unknown field "Ban", must be "ban", "max" or "for")"},
        {R"({"":1})", R"(unknown field "", must be "ban", "max" or "for")"},
        {R"({"ban":"1s","x":{"ban":[1,"]}"]}})",
         R"(unknown field "x", must be "ban", "max" or "for")"},
        {R"({"b\u0061n":"1s"})",
         R"(unknown field "b\u0061n", must be "ban", "max" or "for")"},
    };

    for (const auto &each : kCases) {
        assert_text_equal(Read(each.body).sentence(), each.sentence);
    }
}

void what_is_no_object(void **)
{
    using namespace std::string_view_literals;

    for (std::string_view body :
         {""sv, " "sv, "ban"sv, "{"sv, "{\"ban\":\"15m\""sv,
          "{\"ban\":\"15m\"} x"sv, "{\"ban\":\"15m\"}{}"sv, "{'ban':'15m'}"sv,
          "{\"ban\":15m}"sv, "{\"ban\":\"15m\",}"sv, "{\"ban\":\"15m\"}\0"sv,
          "ban=15m"sv, "\xef\xbb\xbf{\"ban\":\"15m\"}"sv})
    {
        assert_text_equal(Read(body).sentence(),
                          "the body is not JSON: \"" + std::string(body)
                              + R"(", it must be an object as {"ban":"15m"})");
    }

    for (std::string_view body :
         {"null", "[]", "\"ban\"", " 15", R"([{"ban":"15m"}])"})
    {
        assert_text_equal(Read(body).sentence(),
                          "the body is no object: \"" + std::string(body)
                              + R"(", it must be one as {"ban":"15m"})");
    }
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_ban),
        cmocka_unit_test(an_override),
        cmocka_unit_test(times),
        cmocka_unit_test(values_that_are_not_right),
        cmocka_unit_test(fields_that_do_not_go_together),
        cmocka_unit_test(what_is_no_object),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
