/*
 * How many GB per second are looked through for a usage, by what passes and by
 * the size of the pieces; and how many memcpy() copies of the same meanwhile.
 * Prints a list of rounds.
 */

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "usage/pure/sl_usage_scanner.h"

namespace {

using Format = sl::UsageScanner::Format;

constexpr int kRounds = 10;
constexpr size_t kBodySize = 1 << 20;
constexpr size_t kBytesPerRound = 64 << 20;
constexpr size_t kPieceSizes[] = {4 << 10, 16 << 10};
constexpr size_t kLargestPiece = 16 << 10;

constexpr std::string_view kUsage =
    R"("usage":{"prompt_tokens":19,"completion_tokens":10,)"
    R"("total_tokens":29,"prompt_tokens_details":{"cached_tokens":0}}})";

struct Body {
    const char *name;
    Format format;
    std::string text;
};

std::string repeated(const std::string &head, std::string_view part,
                     std::string_view tail)
{
    std::string text = head;

    while (text.size() < kBodySize) {
        text += part;
    }

    return text.append(tail);
}

/* An answer that is one long text, with line ends and quotes in it. */
std::string long_string()
{
    return repeated(
        R"({"id":"chatcmpl-9Xu2","object":"chat.completion",)"
        R"("created":1717171717,"model":"gpt-4o","choices":[{"index":0,)"
        R"("message":{"role":"assistant","content":")",
        R"(The quick brown fox jumps over the lazy dog, and then it says )"
        R"(\"well, that was not so hard after all\" before it goes home.\n)",
        std::string(R"("},"logprobs":null,"finish_reason":"stop"}],)")
            .append(kUsage));
}

/* What an answer is made of that tells the likelihood of each token. */
std::string small_members()
{
    return repeated(
        R"({"id":"chatcmpl-9Xu2","choices":[{"logprobs":{"content":[)",
        R"({"token":" fox","logprob":-0.31725305,"bytes":[32,102,111,120],)"
        R"("top_logprobs":[{"token":" fox","logprob":-0.31725305}]},)",
        std::string("null]}}],").append(kUsage));
}

/* Members beside those that the paths lead to: each has to be looked at. */
std::string members_beside()
{
    return repeated("{", R"("index":0,"name":"fox","logprob":-0.31,)", kUsage);
}

std::string events()
{
    return repeated(
        "",
        R"(data: {"id":"chatcmpl-9Xu2Zb1","object":)"
        R"("chat.completion.chunk","created":1717171717,"model":)"
        R"("gpt-4o-mini","choices":[{"index":0,"delta":{"content":)"
        R"(" fox"},"finish_reason":null}],"usage":null})"
        "\n\n",
        std::string(R"(data: {"choices":[],)").append(kUsage).append("\n\n"));
}

/* As Python's json.dumps() writes them. */
std::string spaced_events()
{
    return repeated(
        "",
        R"(data: {"id": "chatcmpl-9Xu2Zb1", "object": )"
        R"("chat.completion.chunk", "created": 1717171717, "model": )"
        R"("gpt-4o-mini", "choices": [{"index": 0, "delta": {"content": )"
        R"(" fox"}, "finish_reason": null}], "usage": null})"
        "\n\n",
        std::string(R"(data: {"choices": [], )").append(kUsage).append("\n\n"));
}

double cpu_seconds()
{
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);

    return static_cast<double>(now.tv_sec)
           + static_cast<double>(now.tv_nsec) / 1e9;
}

template <typename Look>
double gb_per_second(const std::string &text, size_t piece, Look look)
{
    size_t bodies = kBytesPerRound / text.size();
    double start = cpu_seconds();

    for (size_t i = 0; i < bodies; i++) {
        look(text, piece);
    }

    return static_cast<double>(bodies * text.size()) / 1e9
           / (cpu_seconds() - start);
}

template <typename Take>
void in_pieces(std::string_view text, size_t size, Take take)
{
    for (size_t at = 0; at < text.size(); at += size) {
        take(text.substr(at, size));
    }
}

double scanned(const Body &body, const sl::UsagePaths &paths, size_t size)
{
    return gb_per_second(
        body.text, size, [&](std::string_view text, size_t piece_size) {
            sl::UsageScanner scanner(paths, body.format);

            in_pieces(text, piece_size,
                      [&](std::string_view piece) { scanner.feed(piece); });

            if (scanner.usage() != 29) {
                fprintf(stderr, "usage_scan: wrong usage\n");
                exit(1);
            }
        });
}

double copied(const Body &body, size_t size)
{
    static char copy[kLargestPiece];

    return gb_per_second(
        body.text, size, [&](std::string_view text, size_t piece_size) {
            in_pieces(text, piece_size, [&](std::string_view piece) {
                memcpy(copy, piece.data(), piece.size());
                asm volatile("" : : "r"(copy) : "memory");
            });
        });
}

}  // namespace

int main()
{
    const Body bodies[] = {
        {"long_string", Format::kJson, long_string()},
        {"small_members", Format::kJson, small_members()},
        {"members_beside", Format::kJson, members_beside()},
        {"events", Format::kEventStream, events()},
        {"spaced_events", Format::kEventStream, spaced_events()},
    };
    sl::UsagePaths paths;

    paths.add("usage.total_tokens");
    paths.add("usageMetadata.totalTokenCount");

    for (int i = 0; i < kRounds; i++) {
        const char *separator = i > 0 ? ", {" : "[{";

        for (const Body &body : bodies) {
            for (size_t size : kPieceSizes) {
                printf("%s\"%s_%zuk\": {\"scanned\": %.3f, \"copied\": %.3f}",
                       separator, body.name, size >> 10,
                       scanned(body, paths, size), copied(body, size));
                separator = ", ";
            }
        }

        printf("}");
    }

    puts("]");
}
