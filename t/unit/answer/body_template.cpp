/* Templates of bodies: what is one, and what becomes of values in them. */

#include "answer/pure/sl_body_template.h"

#include <memory>

#include "unit.h"

namespace {

using sl::BodyEscape;
using sl::TemplatePart;
using sl::TemplateReader;

/* The parts as one text: a variable in <>, in "" if it is quoted. What is wrong
 * stands at the end, after a '!'. */
std::string split(std::string_view text, BodyEscape escape)
{
    TemplateReader reader(text, escape);
    TemplatePart part;
    std::string parts;

    while (reader.next(&part)) {
        parts += std::string(part.text);

        if (!part.variable.empty()) {
            std::string name(part.variable);

            parts += part.is_quoted ? "<\"" + name + "\">" : "<" + name + ">";
        }
    }

    if (reader.error() != nullptr) {
        parts += std::string("!") + reader.error() + ": "
                 + std::string(reader.error_at());
    }

    assert_false(reader.next(&part));

    return parts;
}

bool is_json_template(std::string_view text)
{
    auto memory = std::make_unique<char[]>(sl::room_for_json_check(text));

    return sl::is_json_template(text, memory.get());
}

std::string written(BodyEscape escape, bool is_quoted, std::string_view value)
{
    auto memory = std::make_unique<char[]>(sl::room_for_value(value.size()));

    return {memory.get(),
            sl::write_value(escape, is_quoted, value, memory.get())};
}

void media_types_have_a_subtype(void **)
{
    assert_true(sl::is_media_type("text/plain"));
    assert_true(sl::is_media_type("application/vnd.a-b_c+json; charset=utf-8"));
    assert_false(sl::is_media_type("text"));
    assert_false(sl::is_media_type("text/"));
    assert_false(sl::is_media_type("/plain"));
    assert_false(sl::is_media_type("a/b/c"));
    assert_false(sl::is_media_type("text /plain"));
    assert_false(sl::is_media_type("text/plain; a\r\nX: y"));
    assert_false(sl::is_media_type(""));
}

void the_media_type_decides_how_values_are_escaped(void **)
{
    assert_true(sl::escape_for("application/json") == BodyEscape::kJson);
    assert_true(sl::escape_for("Text/JSON;x") == BodyEscape::kJson);
    assert_true(sl::escape_for("a/problem+json") == BodyEscape::kJson);
    assert_true(sl::escape_for("text/html; a=+json") == BodyEscape::kHtml);
    assert_true(sl::escape_for("image/svg+xml") == BodyEscape::kHtml);
    assert_true(sl::escape_for("text/plain") == BodyEscape::kNone);
}

void templates_are_split_at_variables(void **)
{
    assert_text_equal(split("", BodyEscape::kNone), "");
    assert_text_equal(split("a", BodyEscape::kNone), "a");
    assert_text_equal(split("$a", BodyEscape::kNone), "<a>");
    assert_text_equal(split("a $b_1, ${c}d$e", BodyEscape::kNone),
                      "a <b_1>, <c>d<e>");
    assert_text_equal(split("\"$a\"\\", BodyEscape::kNone), "\"<a>\"\\");
}

void in_json_variables_in_quotes_are_known(void **)
{
    assert_text_equal(
        split("[\"$a\",$b,\"x\\\"${c}y\",\"\\\\\",$d]", BodyEscape::kJson),
        "[\"<\"a\">\",<b>,\"x\\\"<\"c\">y\",\"\\\\\",<d>]");
    assert_text_equal(split("\"\\u0022$a\"", BodyEscape::kJson),
                      "\"\\u0022<\"a\">\"");
}

void what_is_wrong_is_named(void **)
{
    assert_text_equal(split("a $", BodyEscape::kNone),
                      "!no name follows the \"$\": $");
    assert_text_equal(split("a ${b c", BodyEscape::kNone),
                      "!no \"}\" follows the name: ${b c");
    assert_text_equal(split("[\"a]", BodyEscape::kJson),
                      "!a quote is not closed: [\"a]");
    assert_text_equal(split("[\"\\u00$a\"]", BodyEscape::kJson),
                      "!an escape is not complete: [\"\\u00$a\"]");
    assert_text_equal(split("[$a, \"\\$b\"]", BodyEscape::kJson),
                      "[<a>!an escape is not complete: , \"\\$b\"]");
}

void templates_of_json_are_json_with_values(void **)
{
    assert_true(is_json_template("{\"a\":$b,\"$c\":[\"$d$e\"]}"));
    assert_true(is_json_template("$a"));
    assert_false(is_json_template("{$a:1}"));
    assert_false(is_json_template("$a$b"));
    assert_false(is_json_template("[1$a]"));
    assert_false(is_json_template("[-$a]"));
    assert_false(is_json_template(""));
}

void values_in_json_are_values(void **)
{
    assert_text_equal(written(BodyEscape::kJson, false, ""), "null");
    assert_text_equal(written(BodyEscape::kJson, false, "-1.5"), "-1.5");
    assert_text_equal(written(BodyEscape::kJson, false, "true"), "true");
    assert_text_equal(written(BodyEscape::kJson, false, "null"), "\"null\"");
    assert_text_equal(written(BodyEscape::kJson, false, "1,2"), "\"1,2\"");
    assert_text_equal(written(BodyEscape::kJson, false, "\""), "\"\\\"\"");
    assert_text_equal(written(BodyEscape::kJson, true, "a\"b\n"),
                      "a\\\"b\\u000a");
    assert_text_equal(written(BodyEscape::kJson, true, ""), "");
}

void values_elsewhere_are_text(void **)
{
    assert_text_equal(written(BodyEscape::kHtml, false, "<\"&'>"),
                      "&lt;&quot;&amp;&#39;&gt;");
    assert_text_equal(written(BodyEscape::kNone, false, "<\"&'>"), "<\"&'>");
    assert_text_equal(written(BodyEscape::kNone, false, ""), "");
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(media_types_have_a_subtype),
        cmocka_unit_test(the_media_type_decides_how_values_are_escaped),
        cmocka_unit_test(templates_are_split_at_variables),
        cmocka_unit_test(in_json_variables_in_quotes_are_known),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(templates_of_json_are_json_with_values),
        cmocka_unit_test(values_in_json_are_values),
        cmocka_unit_test(values_elsewhere_are_text),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
