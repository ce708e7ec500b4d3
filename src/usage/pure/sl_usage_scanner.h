/* Finds in a response, while it passes, what the request has cost. */

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "usage/pure/sl_json_usage.h"
#include "usage/pure/sl_usage_paths.h"

namespace sl {

/*
 * It may be given the body in pieces of any size, and keeps nothing of them but
 * what it has found: its own size is all the memory that it takes.
 *
 * A body of JSON is one document or many, as NDJSON has them; one of an event
 * stream has a document in the data of each event. The last that has a number
 * where one of the paths leads counts, and in it the first such path. Where a
 * document is no JSON, what was found in it before counts; the rest of it is
 * ignored, which is all of the rest unless it is an event.
 */
class UsageScanner {
  public:
    enum class Format : uint8_t { kJson, kEventStream };

    /* The paths must be there as long as this is. */
    UsageScanner(const UsagePaths &paths, Format format) noexcept;

    void feed(std::string_view piece) noexcept;

    /* What is known by now, for the client may go away at any time: a number
     * counts as soon as it has been seen with what ends it. It is rounded up,
     * and 10^15 at most; kNoUsage if there is none. */
    int64_t usage() const noexcept { return json_.usage(); }

  private:
    /* Of a line of an event stream: what comes next. */
    enum class Line : uint8_t {
        kName,  /* of a field, and nothing has been seen but a part of "data" */
        kSpace, /* one after the colon is left out */
        kData,
        kOther, /* what is not looked at */
    };

    void take_byte_order_mark(std::string_view *piece) noexcept;
    void feed_proper(std::string_view piece) noexcept;
    const char *read_line(const char *at, const char *end) noexcept;
    const char *read_name(const char *at, const char *end) noexcept;
    const char *read_data(const char *at, const char *end) noexcept;
    void begin_data() noexcept;
    void end_event() noexcept;
    const char *end_line(const char *at) noexcept;

    JsonUsage json_;
    Format format_;
    uint8_t mark_size_ = 0; /* how much of a byte order mark was there */
    bool is_after_mark_ = false;

    Line line_ = Line::kName;
    uint8_t name_size_ = 0;    /* how much of "data" was there */
    bool is_after_cr_ = false; /* a line feed belongs to it */
    bool has_data_ = false;    /* the event */
};

}  // namespace sl
