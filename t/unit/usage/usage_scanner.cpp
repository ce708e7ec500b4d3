/* What is found in a body while it passes. Every body is given as a whole, byte
 * by byte, and in two pieces, split at every position. */

#include "usage/pure/sl_usage_scanner.h"

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "unit.h"

namespace {

using sl::kNoUsage;
using sl::UsageScanner;
using Format = UsageScanner::Format;
using Texts = std::vector<std::string>;

int64_t scan(const Texts &paths, Format format, const Texts &pieces)
{
    sl::UsagePaths all;

    for (const std::string &path : paths) {
        assert_true(all.add(path));
    }

    UsageScanner scanner(all, format);

    for (const std::string &piece : pieces) {
        /* memory of just the size, so that use of more is noticed */
        std::vector<char> copy(piece.begin(), piece.end());

        scanner.feed({copy.data(), copy.size()});
    }

    return scanner.usage();
}

Texts bytes_of(const std::string &body)
{
    Texts bytes;

    for (char ch : body) {
        bytes.emplace_back(1, ch);
    }

    return bytes;
}

void assert_found(const Texts &paths, Format format, const std::string &body,
                  int64_t expected)
{
    auto assert_pieces = [&](const Texts &pieces) {
        int64_t usage = scan(paths, format, pieces);

        if (usage != expected) {
            fail_msg("%ld instead of %ld in %zu pieces, the first of %zu: %s",
                     static_cast<long>(usage), static_cast<long>(expected),
                     pieces.size(), pieces[0].size(), body.c_str());
        }
    };

    assert_pieces({body});
    assert_pieces(bytes_of(body));

    for (size_t split = 0; split <= body.size(); split++) {
        assert_pieces({body.substr(0, split), body.substr(split)});
    }
}

void assert_json(const Texts &paths, const std::string &body, int64_t expected)
{
    assert_found(paths, Format::kJson, body, expected);
}

void assert_events(const Texts &paths, const std::string &body,
                   int64_t expected)
{
    assert_found(paths, Format::kEventStream, body, expected);
}

std::string repeated(std::string_view text, size_t times)
{
    std::string all;

    for (size_t i = 0; i < times; i++) {
        all += text;
    }

    return all;
}

const Texts kPath = {"usage.total"};

/* --- JSON --- */

void the_number_is_found_in_an_object(void **)
{
    assert_json({"n"}, R"({"n":5})", 5);
    assert_json({"n"}, "\n{ \"n\"\t: 5\r\n}\n", 5);
    assert_json({"n"}, R"({"n":{"n":6}})", kNoUsage);
    assert_json({"n"}, R"({"m":5})", kNoUsage);
    assert_json({"n"}, "{}", kNoUsage);
    assert_json({"n"}, "", kNoUsage);
}

void names_lead_into_nested_objects(void **)
{
    assert_json(kPath, R"({"id":"x","usage":{"in":1,"total":7}})", 7);
    assert_json(kPath, R"({"usage":{"x":{"total":7}}})", kNoUsage);
    assert_json(kPath, R"({"x":{"usage":{"total":7}}})", kNoUsage);
    assert_json(kPath, R"({"total":7,"usage":{}})", kNoUsage);
    assert_json({"a.b.c.d.e.f.g.h"},
                R"({"a":{"b":{"c":{"d":{"e":{"f":{"g":{"h":8}}}}}}}})", 8);
}

void real_answers_are_read(void **)
{
    assert_json({"usage.total_tokens"},
                R"({"id":"chatcmpl-9Xu2","object":"chat.completion",)"
                R"("choices":[{"index":0,"message":{"role":"assistant",)"
                R"("content":"He said: \"usage\":{\"total_tokens\":1}"},)"
                R"("finish_reason":"stop"}],"usage":{"prompt_tokens":19,)"
                R"("total_tokens":29,"details":{"total_tokens":3}}})",
                29);
    assert_json({"usageMetadata.totalTokenCount"},
                "{\n  \"candidates\": [\n    {\n      \"index\": 0\n    }\n"
                "  ],\n  \"usageMetadata\": {\n    \"totalTokenCount\": 31\n"
                "  }\n}\n",
                31);
}

void digits_are_an_index_into_arrays(void **)
{
    assert_json({"a.1.n"}, R"({"a":[{"n":1},{"n":2},{"n":3}]})", 2);
    assert_json({"a.0"}, R"({"a":[4,5]})", 4);
    assert_json({"a.10"}, R"({"a":[0,1,2,3,4,5,6,7,8,9,10,11]})", 10);
    assert_json({"a.1"}, R"({"a":["x,y",[1,2],3]})", kNoUsage);
    assert_json({"a.2"}, R"({"a":["x,y",[1,2],3]})", 3);
    assert_json({"a.2"}, R"({"a":[1,2]})", kNoUsage);
    assert_json({"a.0"}, R"({"a":[]})", kNoUsage);
    assert_json({"a.0"}, R"({"a":[ ]})", kNoUsage);
    assert_json({"1.n"}, R"([{"n":1},{"n":2}])", 2);
    assert_json({"0.0.0"}, "[[[6]]]", 6);
    assert_json({"a.01"}, R"({"a":[1,2]})", kNoUsage);
}

void digits_are_a_key_as_well(void **)
{
    assert_json({"a.1"}, R"({"a":{"0":8,"1":9}})", 9);
    assert_json({"a.01"}, R"({"a":{"01":9}})", 9);
}

void texts_that_look_like_the_path_are_not_it(void **)
{
    assert_json(kPath, R"({"x":"\"usage\":{\"total\":7}"})", kNoUsage);
    assert_json(kPath, R"({"x":"usage","total":7})", kNoUsage);
    assert_json(kPath, R"({"x":["usage",{"total":7}]})", kNoUsage);
    assert_json(kPath, R"({"usage.total":7})", kNoUsage);
    assert_json(kPath, R"({"x":"{\"usage\":{\"total\":7}}\\","y":"}"})",
                kNoUsage);
}

void keys_may_have_escapes(void **)
{
    assert_json(kPath, R"({"\u0075sage":{"tot\u0061l":7}})", 7);
    assert_json({"a\"b"}, R"({"a\"b":1})", 1);
    assert_json({"a\\b"}, R"({"a\\b":2})", 2);
    assert_json({"a/b"}, R"({"a\/b":3})", 3);
    assert_json({"\b\f\n\r\t"}, R"({"\b\f\n\r\t":4})", 4);
    assert_json({"\xc3\xa9"}, R"({"\u00E9":5})", 5);
    assert_json({"\xc3\xa9"}, "{\"\xc3\xa9\":5}", 5);
    assert_json({"\xe2\x82\xac"}, R"({"\u20ac":6})", 6);
    assert_json({"x\xf0\x9f\x98\x80y"}, R"({"x\ud83d\uDE00y":7})", 7);
    assert_json({"n"}, R"({"n\u0000":8})", kNoUsage);
    assert_json({"u0061"}, R"({"\u0061":8})", kNoUsage);
}

void keys_that_are_no_unicode_match_nothing(void **)
{
    for (const char *key :
         {R"(\ud83d)", R"(\ude00)", R"(\ud83dn)", R"(\ud83d\n)",
          R"(\ud83d\u0041)", R"(\ud83d\ud83d\ude00)", R"(\x)", R"(\u00g1)",
          R"(\u12)", R"(\u)", R"(n\u)"})
    {
        std::string body = std::string(R"({"n":3,")") + key + R"(":4,"m":5})";

        assert_json({"n"}, body, 3);
        assert_json({"\xef\xbf\xbd", "x", "u", "u12", "m"}, body, 5);
    }
}

void keys_may_be_long(void **)
{
    std::string longest(64, 'k');
    std::string key(1000, 'k');

    assert_json({longest}, "{\"" + longest + "\":5}", 5);
    assert_json({longest}, "{\"" + longest + "k\":5}", kNoUsage);
    assert_json({longest}, "{\"" + longest + "\\u006b\":5}", kNoUsage);
    assert_json({longest, "n"}, "{\"" + key + "\":5,\"n\":6}", 6);
    assert_json({longest, "n"}, "{\"" + key + "\\n\":5,\"n\":6}", 6);
}

void numbers_are_rounded_up(void **)
{
    assert_json({"n"}, R"({"n":1.0})", 1);
    assert_json({"n"}, R"({"n":1.2e1})", 12);
    assert_json({"n"}, R"({"n":1.25e1})", 13);
    assert_json({"n"}, R"({"n":1e-5})", 1);
    assert_json({"n"}, R"({"n":0.1e1})", 1);
    assert_json({"n"}, R"({"n":0.0})", 0);
    assert_json({"n"}, R"({"n":-0})", 0);
    assert_json({"n"}, R"({"n":1e99})", 1000000000000000);
    assert_json({"n"}, R"({"n":9999999999999999999999})", 1000000000000000);
}

void numbers_may_be_long(void **)
{
    std::string zeros(2000, '0');
    auto usage = [](const std::string &number) {
        return scan({"n"}, Format::kJson, bytes_of("{\"n\":" + number + "}"));
    };

    assert_int_equal(usage("1" + zeros + "e-2000"), 1);
    assert_int_equal(usage("0." + zeros + "1e2003"), 100);
    assert_int_equal(usage("1e" + std::string(2000, '9')), 1000000000000000);
}

void below_zero_there_is_no_usage(void **)
{
    assert_json({"n"}, R"({"n":-1})", kNoUsage);
    assert_json({"n"}, R"({"n":5,"n":-1})", kNoUsage);
    assert_json({"n", "m"}, R"({"n":-1,"m":2})", 2);
}

void what_is_no_number_is_no_usage(void **)
{
    for (const char *value : {R"("7")", "true", "false", "null", "{}", "[]",
                              R"({"n":7})", "[7]", R"("")"})
    {
        std::string body = std::string(R"({"n":)") + value;

        assert_json({"n"}, body + "}", kNoUsage);
        assert_json({"n", "m"}, body + R"(,"m":3})", 3);
    }
}

void the_last_of_equal_keys_counts(void **)
{
    assert_json({"n"}, R"({"n":5,"n":6})", 6);
    assert_json({"n"}, R"({"n":5,"\u006e":6})", 6);
    assert_json({"n"}, R"({"n":5,"n":"6"})", kNoUsage);
    assert_json({"n"}, R"({"n":5,"n":null})", kNoUsage);
    assert_json({"n"}, R"({"n":5,"n":[6]})", kNoUsage);
    assert_json({"n"}, R"({"n":5,"m":6})", 5);
}

void the_last_of_equal_parents_counts(void **)
{
    assert_json(kPath, R"({"usage":{"total":5},"usage":{"total":6}})", 6);
    assert_json(kPath, R"({"usage":{"total":5},"usage":{"in":6}})", kNoUsage);
    assert_json(kPath, R"({"usage":{"total":5},"usage":{}})", kNoUsage);
    assert_json(kPath, R"({"usage":{"total":5},"usage":7})", kNoUsage);
    assert_json(kPath, R"({"usage":{"total":5},"usage":null})", kNoUsage);
    assert_json(kPath, R"({"usage":{"total":5},"usage":[1]})", kNoUsage);
    assert_json({"usage.total", "n"},
                R"({"usage":{"total":5},"n":4,"usage":""})", 4);
}

void the_first_path_counts_in_a_document(void **)
{
    assert_json({"a", "b"}, R"({"a":1,"b":2})", 1);
    assert_json({"a", "b"}, R"({"b":2,"a":1})", 1);
    assert_json({"a", "b"}, R"({"b":2})", 2);
    assert_json({"a", "b"}, R"({"a":"x","b":2})", 2);
    assert_json({"a.b", "a"}, R"({"a":7})", 7);
    assert_json({"a", "a.b"}, R"({"a":{"b":8}})", 8);
    assert_json({"1", "2", "3", "4", "5", "6", "7", "8"},
                R"({"8":8,"7":7,"6":"6"})", 7);
}

void no_paths_find_nothing(void **)
{
    assert_json({}, R"({"a":1,"b":[2]})", kNoUsage);
    assert_events({}, "data: {\"a\":1}\n\n", kNoUsage);
}

/* --- several documents --- */

void the_last_document_with_a_number_counts(void **)
{
    assert_json({"n"}, "{\"n\":1}\n{\"n\":2}\n{\"done\":true}\n", 2);
    assert_json({"n"}, R"({"n":1}{"n":2})", 2);
    assert_json({"n"}, "{\"n\":1}\r\n\r\n{\"n\":\"x\"}", 1);
    assert_json({"n"}, "1 \"n\" null true [1] {\"n\":3} -5 ", 3);
    assert_json({"a", "b"}, R"({"a":1} {"b":2})", 2);
}

/* As Gemini sends a stream that nobody has asked to be one of events. */
void an_array_of_documents_is_a_list_of_them(void **)
{
    assert_json({"n"}, R"([{"n":1}])", 1);
    assert_json({"n"}, "[{\"n\":1}\n,\r\n{\"n\":2},{\"m\":3}]", 2);
    assert_json({"usage.n", "n"}, R"([{"usage":{"n":1},"n":2},{"n":3}])", 3);
    assert_json({"n"}, R"([5,"n",null,[{"n":1}],{"n":2},{"n":-1},6])", 2);
    assert_json({"n"}, R"([]{"n":1}[ ][{"n":2}] {"m":3})", 2);
    assert_json({"n"}, R"([{"n":1},{"n":2)", 1);
    assert_json({"n"}, R"([{"n":1},{"n":2,)", 2);
    assert_events({"n"}, "data: [{\"n\":1},{\"n\":2}]\n\n", 2);
    assert_events({"n"}, "data: [{\"n\":1},\n\ndata: {\"n\":2}\n\n", 2);
    assert_events({"n"}, "data: [{\"n\":1}] {\"n\":2}\n\n", 1);
}

void a_list_has_commas_and_an_end(void **)
{
    assert_json({"n"}, R"([{"n":1} {"n":2}])", 1);
    assert_json({"n"}, R"([{"n":1}}{"n":2})", 1);
    assert_json({"n"}, R"([,{"n":1}])", kNoUsage);
    assert_json({"n"}, R"([{"n":1},]{"n":2})", 1);
}

/* Then it says which element is meant. */
void an_array_is_no_list_if_a_path_begins_with_an_index(void **)
{
    assert_json({"n", "0.n"}, R"([{"n":1},{"n":2}])", 1);
    assert_json({"n", "7"}, R"([{"n":1}])", kNoUsage);
    assert_json({"n", "01"}, R"([{"n":1}])", 1);
}

void the_document_under_way_counts_as_soon_as_it_has_one(void **)
{
    assert_json({"n"}, "{\"n\":1}\n{\"n\":2,", 2);
    assert_json({"n"}, "{\"n\":1}\n{\"n\":2", 1);
    assert_json({"n"}, "{\"n\":1}\n{\"m\":2,", 1);
}

void a_byte_order_mark_may_begin_it(void **)
{
    assert_json({"n"}, "\xef\xbb\xbf{\"n\":1}", 1);
    assert_json({"n"}, "\xef\xbb{\"n\":1}", kNoUsage);
    assert_json({"n"}, "\xef\xbb\xbf\xef\xbb\xbf{\"n\":1}", kNoUsage);
}

/* --- what is cut off or wrong --- */

void a_number_counts_when_its_end_is_seen(void **)
{
    assert_json({"n"}, R"({"n":12)", kNoUsage);
    assert_json({"n"}, R"({"n":12,)", 12);
    assert_json({"n"}, R"({"n":12})", 12);
    assert_json({"n"}, R"({"n":12 )", 12);
    assert_json({"n"}, R"({"n":5,"n":12)", 5);
    assert_json(kPath, R"({"usage":{"total":5},"x":"and so)", 5);
}

void what_was_found_before_a_fault_stays(void **)
{
    for (const char *fault :
         {"x",          "}}",          ",,",         "{",
          ":",          "[",           R"("m" 1)",   R"("m":})",
          R"("m":,)",   R"("m"::1)",   R"("m":1])",  R"("m":1 2)",
          R"("m":1:2)", R"("m":"""})", R"(1:2)",     R"("n":01)",
          R"("n":1x)",  R"("n":.5)",   R"("n":-)",   R"("n":+1)",
          R"("n":1.)",  R"("n":1e)",   R"("n":0x1)", "]"})
    {
        std::string body = std::string(R"({"n":5,)") + fault;

        assert_json({"n"}, body + R"(,"n":6} {"n":7})", 5);
    }
}

void nothing_is_read_after_a_fault(void **)
{
    assert_json({"n"}, R"({"n" 5})", kNoUsage);
    assert_json({"n"}, R"(}{"n":5})", kNoUsage);
    assert_json({"n"}, R"(,{"n":5})", kNoUsage);
    assert_json({"n"}, R"({"n":5}]{"n":6})", 5);
    assert_json({"n"}, R"({"m":,"n":5})", kNoUsage);
    assert_json({"n"}, R"({"m": ,"n":5})", kNoUsage);
    assert_json({"0"}, "[5}", 5);
    assert_json({"0"}, "[,5]", kNoUsage);
    assert_json({"1"}, "[5,]", kNoUsage);
}

void what_no_path_leads_into_is_not_looked_at(void **)
{
    assert_json({"n"}, R"({"m":[1,{],:"x]"},"n":5})", 5);
    assert_json({"n"}, R"({"m":nope,"n":5})", 5);
    assert_json({"n"}, "{\"m\":\"a\nb\",\"n\":5}", 5);
}

void nesting_has_no_bound(void **)
{
    size_t depth = 100000;
    std::string deep = R"({"x":)" + repeated(R"([{"n":1,"y":)", depth) + "0"
                       + repeated("}]", depth) + R"(,"n":2})";

    assert_int_equal(scan({"n"}, Format::kJson, {deep}), 2);
    assert_int_equal(scan({"n"}, Format::kJson, bytes_of(deep)), 2);
    assert_int_equal(scan({"0.0.0"}, Format::kJson, {std::string(depth, '[')}),
                     kNoUsage);
}

void brackets_in_texts_do_not_count(void **)
{
    assert_json({"n"}, R"({"x":["]","}","[{","\"]","\\"],"n":2})", 2);
    assert_json({"n"}, R"({"x":{"]}":"\\\"]}"},"n":2})", 2);
}

/* Where 64 bytes are looked at together, the next 64 follow. */
void backslashes_may_stand_anywhere(void **)
{
    for (size_t before = 0; before < 140; before++) {
        for (size_t backslashes : {1, 2, 3, 64, 65}) {
            std::string body = R"({"x":[")" + std::string(before, 'a')
                               + repeated("\\\\", backslashes) + R"(\"]", )"
                               + std::string(before, ' ') + R"("]"],"n":2})";

            assert_int_equal(scan({"n"}, Format::kJson, {body}), 2);
            assert_int_equal(scan({"n"}, Format::kJson, bytes_of(body)), 2);
        }
    }
}

void everything_may_be_anything(void **)
{
    for (unsigned first = 0; first < 256; first++) {
        for (unsigned second = 0; second < 256; second++) {
            std::string body = {static_cast<char>(first),
                                static_cast<char>(second)};

            (void)scan({"n", "0"}, Format::kJson, {body});
            (void)scan({"n", "0"}, Format::kJson, {R"({"n":)" + body});
            (void)scan({"n", "0"}, Format::kEventStream, {"data:[" + body});
        }
    }
}

/* --- event streams --- */

void the_last_event_with_a_number_counts(void **)
{
    assert_events({"n"}, "data: {\"n\":1}\n\ndata: {\"n\":2}\n\n", 2);
    assert_events({"n"},
                  "data: {\"n\":1}\n\ndata: {\"m\":2}\n\ndata: [DONE]\n\n", 1);
    assert_events({"a", "b"}, "data: {\"a\":1}\n\ndata: {\"b\":2}\n\n", 2);
    assert_events({"n"}, "data: {\"n\":1}\n\ndata: {\"n\":null}\n\n", 1);
}

void lines_end_in_three_ways(void **)
{
    for (const char *end : {"\n", "\r\n", "\r"}) {
        std::string body = std::string("data: {\"n\":1}") + end + end
                           + "data: {\"n\":" + end + "data: 2}" + end + end;

        assert_events({"n"}, body, 2);
    }

    assert_events({"n"}, "data:{\"n\":1}\r\n\rdata:{\"n\":2}\n\r\n", 2);
    /* \n\r is two of them, so this is an event that has no end */
    assert_events({"n"}, "data:{\"n\":\n\rdata:2}\n\n", kNoUsage);
}

void one_space_after_the_colon_is_left_out(void **)
{
    assert_events({"n"}, "data:{\"n\":1}\n\n", 1);
    assert_events({"n"}, "data: {\"n\":1}\n\n", 1);
    assert_events({"n"}, "data:   {\"n\":1}\n\n", 1);
    assert_events({"ab"}, "data: {\"a\ndata: b\":1}\n\n", kNoUsage);
    /* the second one belongs to the key */
    assert_events({"a\n b"}, "data: {\"a\ndata:  b\":1}\n\n", 1);
}

void lines_of_data_stand_below_each_other(void **)
{
    assert_events({"n"}, "data: {\ndata: \"n\"\ndata: :\ndata: 12\ndata: }\n\n",
                  12);
    assert_events({"n"}, "data: {\"n\":1\ndata: 2}\n\n", 1);
    assert_events({"n"}, "data: {\"n\":\ndata\ndata:\ndata: 12}\n\n", 12);
}

void comments_and_other_fields_are_ignored(void **)
{
    assert_events({"n"},
                  ": {\"n\":9}\nevent: x\nid: 5\nretry: 3\nfoo\n"
                  "data: {\"n\":\n:data: 8\nevent: data\ndatas: 9\ndat: 9\n"
                  "data : 9\n data: 9\nDATA: 9\ndata: 1}\n:\n\n",
                  1);
}

void a_byte_order_mark_may_begin_the_stream(void **)
{
    assert_events({"n"},
                  "\xef\xbb\xbf"
                  "data: {\"n\":1}\n\n",
                  1);
    assert_events({"n"},
                  "\xef\xbb"
                  "data: {\"n\":1}\n\n",
                  kNoUsage);
    assert_events({"n"},
                  "\xef\n"
                  "data: {\"n\":1}\n\n",
                  1);
    assert_events({"n"},
                  "\n\xef\xbb\xbf"
                  "data: {\"n\":1}\n\n",
                  kNoUsage);
}

void data_that_is_no_json_has_none(void **)
{
    assert_events({"n"}, "data: {\"n\":1}\n\ndata: [DONE]\n\n", 1);
    assert_events({"n"}, "data: {\"n\":1}\n\ndata: hello {\"n\":2}\n\n", 1);
    assert_events({"n"}, "data\n\ndata:\n\n\n\ndata: {\"n\":1}\n\n", 1);
}

void a_fault_ends_with_its_event(void **)
{
    assert_events({"n"}, "data: {\"n\" 1}\n\ndata: {\"n\":2}\n\n", 2);
    assert_events({"n"}, "data: {\"n\":1,}\n\ndata: {\"m\":2}\n\n", 1);
    assert_events({"n"}, "data: {\"x\":[\"\\\n\ndata: {\"n\":2}\n\n", 2);
    assert_events({"n"}, "data: {\"x\":\"\\\n\ndata: {\"n\":2}\n\n", 2);
    assert_events({"n"}, "data: {\"x\":[[\n\ndata: {\"n\":2}\n\n", 2);
    assert_events({"n"}, "data: {\"x\n\ndata: {\"n\":2}\n\n", 2);
    assert_events({"n"}, "data: {\"x\":4\n\ndata: {\"n\":2}\n\n", 2);
}

void an_event_is_one_document(void **)
{
    assert_events({"n"}, "data: {\"n\":1}{\"n\":2}\n\n", 1);
    assert_events({"n"}, "data: {\"n\":1}\ndata: {\"n\":2}\n\n", 1);
    assert_events({"n"}, "data: {\"n\":1}  \ndata: \n\n", 1);
}

void an_event_that_is_cut_off_counts(void **)
{
    assert_events({"n"}, "data: {\"n\":1}\n\ndata: {\"n\":2,\"x\":\"", 2);
    assert_events({"n"}, "data: {\"n\":1}\n\ndata: {\"n\":2}", 2);
    assert_events({"n"}, "data: {\"n\":1}\n\ndata: {\"n\":2", 1);
    assert_events({"n"}, "data: {\"n\":1}\n\ndata: {\"n\":2\n", 1);
}

/* --- the object --- */

void it_takes_little_memory(void **)
{
    assert_true(sizeof(UsageScanner) <= 512);
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(the_number_is_found_in_an_object),
        cmocka_unit_test(names_lead_into_nested_objects),
        cmocka_unit_test(real_answers_are_read),
        cmocka_unit_test(digits_are_an_index_into_arrays),
        cmocka_unit_test(digits_are_a_key_as_well),
        cmocka_unit_test(texts_that_look_like_the_path_are_not_it),
        cmocka_unit_test(keys_may_have_escapes),
        cmocka_unit_test(keys_that_are_no_unicode_match_nothing),
        cmocka_unit_test(keys_may_be_long),
        cmocka_unit_test(numbers_are_rounded_up),
        cmocka_unit_test(numbers_may_be_long),
        cmocka_unit_test(below_zero_there_is_no_usage),
        cmocka_unit_test(what_is_no_number_is_no_usage),
        cmocka_unit_test(the_last_of_equal_keys_counts),
        cmocka_unit_test(the_last_of_equal_parents_counts),
        cmocka_unit_test(the_first_path_counts_in_a_document),
        cmocka_unit_test(no_paths_find_nothing),
        cmocka_unit_test(the_last_document_with_a_number_counts),
        cmocka_unit_test(an_array_of_documents_is_a_list_of_them),
        cmocka_unit_test(a_list_has_commas_and_an_end),
        cmocka_unit_test(an_array_is_no_list_if_a_path_begins_with_an_index),
        cmocka_unit_test(the_document_under_way_counts_as_soon_as_it_has_one),
        cmocka_unit_test(a_byte_order_mark_may_begin_it),
        cmocka_unit_test(a_number_counts_when_its_end_is_seen),
        cmocka_unit_test(what_was_found_before_a_fault_stays),
        cmocka_unit_test(nothing_is_read_after_a_fault),
        cmocka_unit_test(what_no_path_leads_into_is_not_looked_at),
        cmocka_unit_test(nesting_has_no_bound),
        cmocka_unit_test(brackets_in_texts_do_not_count),
        cmocka_unit_test(backslashes_may_stand_anywhere),
        cmocka_unit_test(everything_may_be_anything),
        cmocka_unit_test(the_last_event_with_a_number_counts),
        cmocka_unit_test(lines_end_in_three_ways),
        cmocka_unit_test(one_space_after_the_colon_is_left_out),
        cmocka_unit_test(lines_of_data_stand_below_each_other),
        cmocka_unit_test(comments_and_other_fields_are_ignored),
        cmocka_unit_test(a_byte_order_mark_may_begin_the_stream),
        cmocka_unit_test(data_that_is_no_json_has_none),
        cmocka_unit_test(a_fault_ends_with_its_event),
        cmocka_unit_test(an_event_is_one_document),
        cmocka_unit_test(an_event_that_is_cut_off_counts),
        cmocka_unit_test(it_takes_little_memory),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
