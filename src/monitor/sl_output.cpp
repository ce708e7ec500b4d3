#include "monitor/sl_output.h"

#include "base/pure/sl_escape.h"

namespace sl {

namespace {

constexpr size_t kBufferSize = 16 * 1024;
constexpr size_t kLongestString = 256;

/* What is escaped at a time. */
constexpr size_t kLongestPiece = 256;

/* How much of a text to escape at once, so that no character is cut in half. */
size_t piece_size(std::string_view text)
{
    constexpr size_t kLongestCharacter = 4;

    if (text.size() <= kLongestPiece) {
        return text.size();
    }

    size_t size = kLongestPiece;

    while (size > kLongestPiece - kLongestCharacter
           && (static_cast<u_char>(text[size]) & 0xc0) == 0x80)
    {
        size--;
    }

    return size;
}

}  // namespace

Output::Output(ngx_pool_t *pool) noexcept
    : pool_(pool), first_(nullptr), next_(&first_), last_(nullptr),
      final_(nullptr), size_(0), is_complete_(true)
{}

ngx_buf_t *Output::add_buffer(ngx_buf_t *buffer) noexcept
{
    ngx_chain_t *link =
        buffer != nullptr ? ngx_alloc_chain_link(pool_) : nullptr;

    if (link == nullptr) {
        is_complete_ = false;
        return nullptr;
    }

    link->buf = buffer;
    link->next = nullptr;
    *next_ = link;
    next_ = &link->next;
    final_ = buffer;

    return buffer;
}

Output &Output::operator<<(std::string_view piece) noexcept
{
    while (!piece.empty()) {
        if (last_ == nullptr || last_->last == last_->end) {
            last_ = add_buffer(ngx_create_temp_buf(pool_, kBufferSize));

            if (last_ == nullptr) {
                return *this;
            }
        }

        size_t room = static_cast<size_t>(last_->end - last_->last);
        size_t size = ngx_min(room, piece.size());

        last_->last = ngx_cpymem(last_->last, piece.data(), size);
        size_ += static_cast<off_t>(size);
        piece.remove_prefix(size);
    }

    return *this;
}

Output &Output::operator<<(uint64_t number) noexcept
{
    u_char text[NGX_INT64_LEN];

    return *this << view(text, ngx_sprintf(text, "%uL", number));
}

Output &Output::operator<<(int64_t number) noexcept
{
    if (number < 0) {
        *this << "-";
    }

    return *this << (number < 0 ? -static_cast<uint64_t>(number)
                                : static_cast<uint64_t>(number));
}

void Output::refer(std::string_view lasting) noexcept
{
    auto *buffer =
        static_cast<ngx_buf_t *>(ngx_pcalloc(pool_, sizeof(ngx_buf_t)));

    if (add_buffer(buffer) == nullptr) {
        return;
    }

    ngx_str_t text = str(lasting);

    buffer->pos = buffer->start = text.data;
    buffer->last = buffer->end = text.data + text.len;
    buffer->memory = 1;

    last_ = nullptr;
    size_ += static_cast<off_t>(text.len);
}

Output &Output::seconds(uint64_t microseconds) noexcept
{
    constexpr uint64_t kSecond = 1000000;

    *this << microseconds / kSecond;

    if (microseconds % kSecond == 0) {
        return *this;
    }

    u_char text[NGX_INT64_LEN];
    std::string_view decimals =
        view(text, ngx_sprintf(text, "%06uL", microseconds % kSecond));

    return *this << "."
                 << decimals.substr(0, decimals.find_last_not_of('0') + 1);
}

Output &Output::json_string(std::string_view text) noexcept
{
    return long_json_string(text.substr(0, kLongestString));
}

Output &Output::long_json_string(std::string_view text) noexcept
{
    *this << "\"";

    return json_text(text) << "\"";
}

Output &Output::json_text(std::string_view text) noexcept
{
    while (!text.empty()) {
        char escaped[kLongestPiece * kLongestEscape];
        size_t size = piece_size(text);
        char *end = escape_json_without_markup(text.substr(0, size), escaped);

        *this << std::string_view(escaped, static_cast<size_t>(end - escaped));
        text.remove_prefix(size);
    }

    return *this;
}

ngx_chain_t *Output::chain(bool is_all) noexcept
{
    if (final_ != nullptr) {
        final_->last_buf = is_all ? 1 : 0;
        final_->last_in_chain = 1;
    }

    return first_;
}

}  // namespace sl
