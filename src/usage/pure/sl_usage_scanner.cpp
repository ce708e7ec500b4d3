#include "usage/pure/sl_usage_scanner.h"

#include <type_traits>

#include "usage/pure/sl_byte_masks.h"

namespace sl {

/* It stands in memory of nginx, which calls no destructors, for each request
 * that is looked at. */
static_assert(std::is_trivially_destructible_v<UsageScanner>);
static_assert(sizeof(UsageScanner) <= 512);

namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::string_view kDataField = "data";

bool ends_line(char ch)
{
    return ch == '\n' || ch == '\r';
}

}  // namespace

UsageScanner::UsageScanner(const UsagePaths &paths, Format format) noexcept
    : json_(paths, format == Format::kJson ? JsonUsage::Documents::kAny
                                           : JsonUsage::Documents::kOne),
      format_(format)
{}

void UsageScanner::feed(std::string_view piece) noexcept
{
    if (!is_after_mark_) {
        take_byte_order_mark(&piece);
    }

    feed_proper(piece);
}

/* It may begin either, and means nothing. A part of it does. */
void UsageScanner::take_byte_order_mark(std::string_view *piece) noexcept
{
    while (!piece->empty() && piece->front() == kByteOrderMark[mark_size_]) {
        piece->remove_prefix(1);
        mark_size_++;

        if (mark_size_ == kByteOrderMark.size()) {
            is_after_mark_ = true;
            return;
        }
    }

    if (!piece->empty()) {
        is_after_mark_ = true;
        feed_proper(kByteOrderMark.substr(0, mark_size_));
    }
}

void UsageScanner::feed_proper(std::string_view piece) noexcept
{
    if (format_ == Format::kJson) {
        json_.feed(piece);
        return;
    }

    const char *at = piece.data();
    const char *end = at + piece.size();

    while (at != end) {
        at = read_line(at, end);
    }
}

const char *UsageScanner::read_line(const char *at, const char *end) noexcept
{
    if (is_after_cr_) {
        is_after_cr_ = false;

        if (*at == '\n') {
            return at + 1;
        }
    }

    switch (line_) {
    case Line::kName:
        return read_name(at, end);
    case Line::kSpace:
        line_ = Line::kData;
        return *at == ' ' ? at + 1 : at;
    case Line::kData:
        return read_data(at, end);
    default:
        at = find_either(at, end, '\n', '\r');
        return at != end ? end_line(at) : at;
    }
}

const char *UsageScanner::read_name(const char *at, const char *end) noexcept
{
    while (name_size_ < kDataField.size() && *at == kDataField[name_size_]) {
        name_size_++;
        at++;

        if (at == end) {
            return at;
        }
    }

    bool is_data = name_size_ == kDataField.size();

    if (is_data && *at == ':') {
        begin_data();
        line_ = Line::kSpace;
        return at + 1;
    }

    if (!ends_line(*at)) {
        line_ = Line::kOther;
        return at;
    }

    if (is_data) {
        begin_data();
    } else if (name_size_ == 0) {
        end_event();
    }

    return end_line(at);
}

const char *UsageScanner::read_data(const char *at, const char *end) noexcept
{
    const char *to = find_either(at, end, '\n', '\r');

    json_.feed({at, static_cast<size_t>(to - at)});

    return to != end ? end_line(to) : to;
}

/* Lines of data stand below each other. */
void UsageScanner::begin_data() noexcept
{
    if (has_data_) {
        json_.feed("\n");
    }

    has_data_ = true;
}

void UsageScanner::end_event() noexcept
{
    json_.end_document();
    has_data_ = false;
}

const char *UsageScanner::end_line(const char *at) noexcept
{
    is_after_cr_ = *at == '\r';
    line_ = Line::kName;
    name_size_ = 0;

    return at + 1;
}

}  // namespace sl
