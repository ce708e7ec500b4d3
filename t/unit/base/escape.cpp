/* Foreign text in JSON, HTML and log lines: what stays, what is escaped, and
 * that it never takes more room than was promised. */

#include "base/pure/sl_escape.h"

#include <algorithm>
#include <initializer_list>
#include <random>
#include <vector>

#include "unit.h"

namespace {

using namespace std::string_view_literals;
using Escape = char *(*)(std::string_view, char *);

constexpr std::string_view kReplacement = "\\ufffd";
constexpr Escape kAll[] = {sl::escape_json, sl::escape_json_without_markup,
                           sl::escape_html, sl::escape_log};

/* Memory of just the sizes promised, so that use of more is noticed. */
std::string escaped(Escape escape, std::string_view text)
{
    std::vector<char> copy(text.begin(), text.end());
    std::vector<char> to(text.size() * sl::kLongestEscape);

    char *end = escape({copy.data(), copy.size()}, to.data());

    assert_true(end >= to.data() && end <= to.data() + to.size());

    return {to.data(), static_cast<size_t>(end - to.data())};
}

std::string json(std::string_view text)
{
    return escaped(sl::escape_json, text);
}

std::string html(std::string_view text)
{
    return escaped(sl::escape_html, text);
}

std::string log(std::string_view text)
{
    return escaped(sl::escape_log, text);
}

std::string byte(int value)
{
    return std::string(1, static_cast<char>(value));
}

std::string repeat(std::string_view text, size_t times)
{
    std::string all;

    for (size_t i = 0; i < times; i++) {
        all += text;
    }

    return all;
}

/* "\u" or "\x" and the number in small hex digits. */
std::string coded(std::string_view start, int value, int digits)
{
    std::string text{start};

    for (int i = digits; i-- > 0;) {
        text += "0123456789abcdef"[value >> (4 * i) & 15];
    }

    return text;
}

/* A character in UTF-8's shortest form; also of surrogates, and of what is past
 * the last one. */
std::string utf_8(unsigned long code)
{
    auto tail = [&](int shift) {
        return byte(static_cast<int>(0x80 | (code >> shift & 0x3f)));
    };
    auto lead = [&](int mark, int shift) {
        return byte(static_cast<int>(mark | code >> shift));
    };

    if (code < 0x80) {
        return lead(0, 0);
    }

    if (code < 0x800) {
        return lead(0xc0, 6) + tail(0);
    }

    if (code < 0x10000) {
        return lead(0xe0, 12) + tail(6) + tail(0);
    }

    return lead(0xf0, 18) + tail(12) + tail(6) + tail(0);
}

bool is_surrogate(unsigned long code)
{
    return code >= 0xd800 && code <= 0xdfff;
}

/* Whether 2 to 4 bytes are one character: if so, coding it gives them back. */
bool is_character(std::string_view text)
{
    auto lead = static_cast<unsigned char>(text[0]);
    unsigned long code = lead & (0x7f >> text.size());

    for (char ch : text.substr(1)) {
        code = code << 6 | (static_cast<unsigned char>(ch) & 0x3f);
    }

    return code >= 0x80 && code <= 0x10ffff && !is_surrogate(code)
           && utf_8(code) == text;
}

/* --- all of them --- */

void nothing_stays_nothing(void **)
{
    for (Escape escape : kAll) {
        char to[1] = {'!'};

        assert_text_equal(escaped(escape, ""), "");
        assert_text_equal(escaped(escape, {}), "");
        assert_ptr_equal(escape({}, to), to);
        assert_int_equal(to[0], '!');
    }
}

void ordinary_text_stays_as_it_is(void **)
{
    for (Escape escape : kAll) {
        assert_text_equal(escaped(escape, "a"), "a");
        assert_text_equal(escaped(escape, "203.0.113.9, 2001:db8::1"),
                          "203.0.113.9, 2001:db8::1");
        assert_text_equal(escaped(escape, "/login?a=b#c %41 {$x} [1] ~`*|;"),
                          "/login?a=b#c %41 {$x} [1] ~`*|;");
    }
}

void no_byte_takes_more_room_than_promised(void **)
{
    size_t longest = 0;

    for (Escape escape : kAll) {
        for (int ch = 0; ch < 256; ch++) {
            /* escaped() does not have more room */
            size_t size = escaped(escape, repeat(byte(ch), 50)).size();

            assert_true(size >= 50 && size <= 50 * sl::kLongestEscape);
            longest = std::max(longest, size);
        }
    }

    assert_int_equal(longest, 50 * sl::kLongestEscape);
}

void no_mixture_takes_more_room_than_promised(void **)
{
    std::mt19937 random(7);

    for (int i = 0; i < 20000; i++) {
        std::string text;

        for (size_t size = random() % 20; text.size() < size;) {
            text += byte(static_cast<int>(random() % 256));
        }

        for (Escape escape : kAll) {
            escaped(escape, text);
        }
    }
}

/* --- escape_json --- */

void quotes_and_backslashes_get_a_backslash_in_json(void **)
{
    assert_text_equal(json("\""), "\\\"");
    assert_text_equal(json("\\"), "\\\\");
    assert_text_equal(json("\\\""), "\\\\\\\"");
    assert_text_equal(json("say \"no\" to C:\\"), "say \\\"no\\\" to C:\\\\");
    assert_text_equal(json("\\u0041"), "\\\\u0041");
}

void control_characters_are_coded_in_json(void **)
{
    for (int ch = 0; ch < 0x20; ch++) {
        assert_text_equal(json(byte(ch)), coded("\\u", ch, 4));
        assert_text_equal(json("a" + byte(ch) + "b"),
                          "a" + coded("\\u", ch, 4) + "b");
    }

    assert_text_equal(json("\x7f"), "\\u007f");
    assert_text_equal(json("a\0b"sv), "a\\u0000b");
    assert_text_equal(json("a\r\nb"), "a\\u000d\\u000ab");
}

void all_other_ascii_stays_in_json(void **)
{
    for (int ch = 0x20; ch < 0x7f; ch++) {
        if (ch != '"' && ch != '\\') {
            assert_text_equal(json(byte(ch)), byte(ch));
        }
    }
}

void every_character_of_utf_8_stays_in_json(void **)
{
    std::string text;

    for (unsigned long code = 0x80; code <= 0x10ffff; code++) {
        if (!is_surrogate(code)) {
            text += utf_8(code);
        }

        /* not one by one: there are a million of them */
        if (code % 0x1000 == 0xfff) {
            assert_true(json(text) == text);
            text.clear();
        }
    }

    assert_text_equal(text, "");
}

void characters_of_every_length_stay_in_json(void **)
{
    for (std::string_view text :
         {"z\xc3\xbcrich", "\xe6\x9d\xb1\xe4\xba\xac", "\xf0\x9f\x94\x91",
          "\xc2\x80\xdf\xbf", "\xe0\xa0\x80\xef\xbf\xbf",
          "\xed\x9f\xbf\xee\x80\x80", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"})
    {
        assert_text_equal(json(text), text);
    }
}

void a_byte_that_begins_no_character_is_replaced(void **)
{
    for (int ch = 0x80; ch < 256; ch++) {
        assert_text_equal(json(byte(ch)), kReplacement);
        assert_text_equal(json("a" + byte(ch) + "b"), "a\\ufffdb");
        assert_text_equal(json(byte(ch) + "\""), "\\ufffd\\\"");
    }
}

void overlong_forms_are_replaced_byte_by_byte(void **)
{
    /* longer forms of "/", of NUL, of a quote, of U+07FF, of U+FFFF */
    for (std::string_view text :
         {"\xc0\xaf"sv, "\xc0\x80"sv, "\xc0\xa2"sv, "\xc1\xbf"sv,
          "\xe0\x80\xaf"sv, "\xe0\x80\x80"sv, "\xe0\x80\xa2"sv,
          "\xe0\x9f\xbf"sv, "\xf0\x80\x80\xaf"sv, "\xf0\x80\x80\xa2"sv,
          "\xf0\x8f\xbf\xbf"sv, "\xf8\x80\x80\x80\xaf"sv,
          "\xfc\x80\x80\x80\x80\xaf"sv})
    {
        assert_text_equal(json(text), repeat(kReplacement, text.size()));
    }
}

void surrogates_are_replaced_byte_by_byte(void **)
{
    for (unsigned long code = 0xd800; code <= 0xdfff; code++) {
        assert_text_equal(json(utf_8(code)), repeat(kReplacement, 3));
    }

    /* a pair of them is no character either */
    assert_text_equal(json("\xed\xa0\xbd\xed\xb4\x91"),
                      repeat(kReplacement, 6));
}

void what_is_past_the_last_character_is_replaced_byte_by_byte(void **)
{
    assert_text_equal(json("\xf4\x90\x80\x80"), repeat(kReplacement, 4));
    assert_text_equal(json("\xf5\x80\x80\x80"), repeat(kReplacement, 4));
    assert_text_equal(json("\xf7\xbf\xbf\xbf"), repeat(kReplacement, 4));
}

void a_character_that_is_cut_off_is_replaced_byte_by_byte(void **)
{
    for (std::string_view whole :
         {"\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x94\x91"}) {
        for (size_t size = 1; size < whole.size(); size++) {
            std::string cut{whole.substr(0, size)};
            std::string replaced = repeat(kReplacement, size);

            assert_text_equal(json(cut), replaced);
            assert_text_equal(json(cut + "x"), replaced + "x");
            assert_text_equal(json(cut + "\""), replaced + "\\\"");
            assert_text_equal(json(cut + std::string{whole}),
                              replaced + std::string{whole});
        }
    }
}

/* A lead byte must not swallow the quote that follows it. */
void every_pair_of_bytes_is_judged_right(void **)
{
    for (int first = 0x80; first < 256; first++) {
        for (int second = 0; second < 256; second++) {
            std::string text = byte(first) + byte(second);

            assert_text_equal(json(text), is_character(text)
                                              ? text
                                              : std::string{kReplacement}
                                                    + json(byte(second)));
        }
    }
}

void every_three_and_four_bytes_at_an_edge_are_judged_right(void **)
{
    constexpr int kEdges[] = {0x00, 0x22, 0x7f, 0x80, 0x8f, 0x90, 0x9f,
                              0xa0, 0xbf, 0xc0, 0xc2, 0xe0, 0xf0, 0xff};

    for (int first = 0xe0; first < 256; first++) {
        for (int second : kEdges) {
            for (int third : kEdges) {
                std::string three = byte(first) + byte(second) + byte(third);
                bool is_one = is_character(three);

                assert_true((json(three) == three) == is_one);

                for (int fourth : kEdges) {
                    std::string text = three + byte(fourth);
                    std::string all = json(text);

                    if (is_one) {
                        assert_text_equal(all, three + json(byte(fourth)));
                    } else if (is_character(text)) {
                        assert_text_equal(all, text);
                    } else {
                        assert_text_equal(all, std::string{kReplacement}
                                                   + json(text.substr(1)));
                    }
                }
            }
        }
    }
}

/* Whatever goes in, a JSON parser finds the end of the string where it is. */
void no_text_breaks_out_of_its_quotes(void **)
{
    std::mt19937 random(11);
    constexpr std::string_view kTricky =
        "\"\\/\0\n\x7f\xc2\xc3\xe2\xed\xf0\xf4\x80\xa2\xbf\xff"
        "au"sv;

    for (int i = 0; i < 50000; i++) {
        std::string text;

        for (size_t size = random() % 12; text.size() < size;) {
            text += kTricky[random() % kTricky.size()];
        }

        std::string out = json(text);

        for (size_t at = 0; at < out.size(); at++) {
            auto ch = static_cast<unsigned char>(out[at]);

            assert_true(ch >= 0x20 && ch != 0x7f && ch != '"');

            if (ch == '\\') {
                at++;
                assert_true(at < out.size()
                            && "\"\\u"sv.find(out[at]) != std::string::npos);
            }
        }

        /* what is left has nothing more to replace */
        assert_int_equal(json(out).find(kReplacement) == std::string::npos,
                         out.find(kReplacement) == std::string::npos);
    }
}

/* --- escape_json_without_markup --- */

void no_markup_stays_in_json(void **)
{
    assert_text_equal(escaped(sl::escape_json_without_markup, "</a>&\"\xff"),
                      "\\u003c/a\\u003e\\u0026\\\"\\ufffd");
}

/* --- escape_html --- */

void what_means_something_in_html_becomes_an_entity(void **)
{
    assert_text_equal(html("<"), "&lt;");
    assert_text_equal(html(">"), "&gt;");
    assert_text_equal(html("&"), "&amp;");
    assert_text_equal(html("\""), "&quot;");
    assert_text_equal(html("'"), "&#39;");
}

void tags_attributes_and_entities_are_just_text_in_html(void **)
{
    assert_text_equal(html("<script>alert('x')</script>"),
                      "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;");
    assert_text_equal(html("\" onload=\"x"), "&quot; onload=&quot;x");
    assert_text_equal(html("&lt;"), "&amp;lt;");
    assert_text_equal(html("a && b"), "a &amp;&amp; b");
}

void every_other_byte_stays_in_html(void **)
{
    for (int ch = 0; ch < 256; ch++) {
        if ("<>&\"'"sv.find(static_cast<char>(ch)) == std::string::npos) {
            assert_text_equal(html(byte(ch)), byte(ch));
        }
    }

    assert_text_equal(html("z\xc3\xbcrich\\"), "z\xc3\xbcrich\\");
}

/* --- escape_log --- */

void printable_ascii_stays_in_a_log(void **)
{
    for (int ch = 0x20; ch < 0x7f; ch++) {
        if (ch != '"' && ch != '\\') {
            assert_text_equal(log(byte(ch)), byte(ch));
        }
    }
}

void all_else_is_coded_in_a_log(void **)
{
    for (int ch = 0; ch < 256; ch++) {
        if (ch < 0x20 || ch >= 0x7f) {
            assert_text_equal(log(byte(ch)), coded("\\x", ch, 2));
        }
    }

    assert_text_equal(log("a\r\n[error] b\0"sv), "a\\x0d\\x0a[error] b\\x00");
    assert_text_equal(log("\xc3\xbc"), "\\xc3\\xbc");
}

void what_ends_a_quoted_text_is_coded_in_a_log(void **)
{
    assert_text_equal(log("\""), "\\x22");
    assert_text_equal(log("\\"), "\\x5c");
    assert_text_equal(log("\\x22"), "\\x5cx22");
}

/* What mask_secrets() makes of it. */
std::string masked(std::string_view text,
                   std::initializer_list<std::string_view> secrets,
                   size_t room = 1000)
{
    std::vector<char> to(room);

    return {to.data(), sl::mask_secrets(text, secrets, to.data(), room)};
}

void secrets_are_masked_wherever_they_stand(void **)
{
    assert_text_equal(masked("no command 'AUTH' 'pass'", {"pass", ""}),
                      "no command 'AUTH' '***'");
    assert_text_equal(masked("passpass word", {"pass", "word"}), "****** ***");
    assert_text_equal(masked("password", {"pass", "password"}), "***");
    assert_text_equal(masked("pas", {"pass"}), "pas");
    assert_text_equal(masked("nothing", {"", ""}), "nothing");
    assert_text_equal(masked("", {"pass"}), "");
}

void no_part_of_a_secret_stays_where_the_rest_is_cut_off(void **)
{
    for (size_t room = 0; room < 12; room++) {
        assert_text_equal(masked("ERR password", {"password"}, room),
                          std::string_view("ERR ***").substr(0, room));
    }
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(nothing_stays_nothing),
        cmocka_unit_test(ordinary_text_stays_as_it_is),
        cmocka_unit_test(no_byte_takes_more_room_than_promised),
        cmocka_unit_test(no_mixture_takes_more_room_than_promised),
        cmocka_unit_test(quotes_and_backslashes_get_a_backslash_in_json),
        cmocka_unit_test(control_characters_are_coded_in_json),
        cmocka_unit_test(all_other_ascii_stays_in_json),
        cmocka_unit_test(every_character_of_utf_8_stays_in_json),
        cmocka_unit_test(characters_of_every_length_stay_in_json),
        cmocka_unit_test(a_byte_that_begins_no_character_is_replaced),
        cmocka_unit_test(overlong_forms_are_replaced_byte_by_byte),
        cmocka_unit_test(surrogates_are_replaced_byte_by_byte),
        cmocka_unit_test(
            what_is_past_the_last_character_is_replaced_byte_by_byte),
        cmocka_unit_test(a_character_that_is_cut_off_is_replaced_byte_by_byte),
        cmocka_unit_test(every_pair_of_bytes_is_judged_right),
        cmocka_unit_test(
            every_three_and_four_bytes_at_an_edge_are_judged_right),
        cmocka_unit_test(no_text_breaks_out_of_its_quotes),
        cmocka_unit_test(no_markup_stays_in_json),
        cmocka_unit_test(what_means_something_in_html_becomes_an_entity),
        cmocka_unit_test(tags_attributes_and_entities_are_just_text_in_html),
        cmocka_unit_test(every_other_byte_stays_in_html),
        cmocka_unit_test(printable_ascii_stays_in_a_log),
        cmocka_unit_test(all_else_is_coded_in_a_log),
        cmocka_unit_test(what_ends_a_quoted_text_is_coded_in_a_log),
        cmocka_unit_test(secrets_are_masked_wherever_they_stand),
        cmocka_unit_test(no_part_of_a_secret_stays_where_the_rest_is_cut_off),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
