/*
 * What a body tells about usage, compared with what a reader finds that has all
 * of it at once; at the end and wherever a piece ends.
 *
 * An input has a byte for the format, one for the sizes of the pieces, a line
 * with paths, and the body.
 */

#include "usage/pure/sl_usage_scanner.h"

#include <vector>

#include "fuzz.h"
#include "usage_reference.h"

namespace {

using sl::UsageScanner;
using usage_reference::Names;

/* What the reference finds at the end of every piece takes too long for more.
 */
constexpr size_t kSmallBody = 256;

/* Sizes from 1 to about 100, more of them small. */
class Sizes {
  public:
    explicit Sizes(uint8_t seed) : state_(seed) {}

    size_t next()
    {
        state_ = state_ * 1103515245 + 12345;

        return 1 + (state_ >> 16 & 0xff) % (1 + (state_ >> 24 & 0x7f));
    }

  private:
    uint32_t state_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Input input(data, size);
    bool is_event_stream = input.number<uint8_t>() % 2 != 0;
    Sizes sizes(input.number<uint8_t>());
    std::vector<std::string> texts =
        usage_reference::split(input.text_before('\n'), ' ');
    std::string body = input.rest();

    sl::UsagePaths paths;
    std::vector<Names> names;

    for (const std::string &text : texts) {
        bool is_path = usage_reference::is_path(text);

        check(sl::UsagePaths::is_path(text) == is_path);
        check(paths.add(text) == (is_path && names.size() < 8));

        if (is_path && names.size() < 8) {
            names.push_back(usage_reference::split(text, '.'));
        }
    }

    auto format = is_event_stream ? UsageScanner::Format::kEventStream
                                  : UsageScanner::Format::kJson;
    UsageScanner whole(paths, format);
    UsageScanner scanner(paths, format);

    for (size_t at = 0; at < body.size();) {
        /* memory of its own: to read past it is noticed */
        std::string piece = body.substr(at, sizes.next());

        scanner.feed(piece);
        at += piece.size();

        if (body.size() <= kSmallBody) {
            check(scanner.usage()
                  == usage_reference::usage(body.substr(0, at), names,
                                            is_event_stream));
        }
    }

    whole.feed(body);
    check(whole.usage() == scanner.usage());
    check(whole.usage()
          == usage_reference::usage(body, names, is_event_stream));

    return 0;
}
