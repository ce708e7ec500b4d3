/*
 * The body of a request that is expected to be small: nothing of it is written
 * to a file, and no more of it is read than may be.
 */

#pragma once

#include "base/sl_nginx.h"

namespace sl {

class SmallBody {
  public:
    static constexpr size_t kLargest = 4096;

    enum class Progress { kAll, kMoreToCome, kTooLarge, kFailed };

    /*
     * Takes what is there. To be called by the handler that was given to
     * ngx_http_read_client_request_body(), with request_body_no_buffering, and
     * after kMoreToCome whenever there may be more. kFailed: `*rc` is what to
     * finalize the request with.
     */
    Progress read(ngx_http_request_t *r, ngx_int_t *rc) noexcept;

    std::string_view text() const noexcept { return {text_, size_}; }

  private:
    bool take(ngx_http_request_t *r) noexcept;
    bool take(ngx_buf_t *buffer) noexcept;

    size_t size_ = 0;

    /* With one byte more it is too large. */
    char text_[kLargest + 1];
};

}  // namespace sl
