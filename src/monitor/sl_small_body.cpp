#include "monitor/sl_small_body.h"

namespace sl {

SmallBody::Progress SmallBody::read(ngx_http_request_t *r,
                                    ngx_int_t *rc) noexcept
{
    *rc = NGX_HTTP_INTERNAL_SERVER_ERROR;

    for (;;) {
        size_t before = size_;

        if (!take(r)) {
            return Progress::kFailed;
        }

        if (size_ > kLargest) {
            return Progress::kTooLarge;
        }

        if (!r->reading_body) {
            return Progress::kAll;
        }

        /* what was taken has made room, so that there may be more at once */
        if (before == size_ && *rc == NGX_AGAIN) {
            return Progress::kMoreToCome;
        }

        *rc = ngx_http_read_unbuffered_request_body(r);

        if (*rc == NGX_ERROR || *rc >= NGX_HTTP_SPECIAL_RESPONSE) {
            return Progress::kFailed;
        }
    }
}

/* Somebody else may have read the body before, mirror for example; then it can
 * be in a file. */
bool SmallBody::take(ngx_http_request_t *r) noexcept
{
    if (r->request_body == nullptr) {
        return true;
    }

    for (ngx_chain_t *link = r->request_body->bufs; link != nullptr;
         link = link->next)
    {
        if (!take(link->buf)) {
            return false;
        }
    }

    if (r->reading_body) {
        r->request_body->bufs = nullptr;
    }

    return true;
}

/* A buffer that is read to its end is used again. */
bool SmallBody::take(ngx_buf_t *buffer) noexcept
{
    size_t room = sizeof(text_) - size_;

    if (ngx_buf_in_memory(buffer)) {
        std::string_view text = view(buffer->pos, buffer->last);

        size_ += text.copy(text_ + size_, room);
        buffer->pos = buffer->last;

        return true;
    }

    if (!buffer->in_file) {
        return true;
    }

    off_t left = buffer->file_last - buffer->file_pos;
    ssize_t read = ngx_read_file(
        buffer->file, bytes(text_ + size_),
        static_cast<size_t>(ngx_min(left, static_cast<off_t>(room))),
        buffer->file_pos);

    size_ += read > 0 ? static_cast<size_t>(read) : 0;

    return read != NGX_ERROR;
}

}  // namespace sl
