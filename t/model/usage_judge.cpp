/*
 * What usage the module's code finds in bodies, for t/usage_scanner.t, which
 * asks others the same. In, per line: "json" or "events", the size of the
 * pieces, the paths with spaces between them, and the body, both as hex digits.
 * Out, per line: the usage, or two that differ if it depends on the pieces.
 */

#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>

#include "sl_hex.h"
#include "usage/pure/sl_usage_scanner.h"

namespace {

using sl::UsageScanner;

int64_t scan(const sl::UsagePaths &paths, UsageScanner::Format format,
             std::string_view body, size_t piece)
{
    UsageScanner scanner(paths, format);

    for (; !body.empty(); body.remove_prefix(std::min(piece, body.size()))) {
        scanner.feed(body.substr(0, piece));
    }

    return scanner.usage();
}

void judge(const std::string &line)
{
    std::istringstream fields(line);
    std::string format_name;
    std::string paths_hex;
    std::string body_hex;
    size_t piece;

    fields >> format_name >> piece >> paths_hex >> body_hex;

    std::string body = sl::from_hex(body_hex);
    std::string path_texts = sl::from_hex(paths_hex);
    std::string_view rest = path_texts;
    sl::UsagePaths paths;

    while (!rest.empty()) {
        std::string_view path = rest.substr(0, rest.find(' '));

        if (!paths.add(path)) {
            printf("no path ");
        }

        rest.remove_prefix(std::min(rest.size(), path.size() + 1));
    }

    auto format = format_name == "json" ? UsageScanner::Format::kJson
                                        : UsageScanner::Format::kEventStream;
    int64_t usage = scan(paths, format, body, body.size());
    int64_t in_pieces = scan(paths, format, body, piece);

    printf("%lld", static_cast<long long>(usage));

    if (in_pieces != usage) {
        printf(" %lld", static_cast<long long>(in_pieces));
    }

    puts("");
}

}  // namespace

int main()
{
    std::string line;

    while (std::getline(std::cin, line)) {
        judge(line);
    }

    return 0;
}
