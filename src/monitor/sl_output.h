/* A text of any length that is written piece by piece, and then sent. */

#pragma once

#include "base/sl_nginx.h"

namespace sl {

class Output {
  public:
    explicit Output(ngx_pool_t *pool) noexcept;

    Output &operator<<(std::string_view piece) noexcept;
    Output &operator<<(uint64_t number) noexcept;
    Output &operator<<(int64_t number) noexcept;

    /* Refers to what is never freed, instead of copying it. */
    void refer(std::string_view lasting) noexcept;

    /* With six decimals at most, and without needless ones. */
    Output &seconds(uint64_t microseconds) noexcept;

    /* In quotes, with whatever must not stand there escaped: markup, too. */
    Output &json_string(std::string_view text) noexcept;

    /* False: out of memory, and something is missing. */
    bool is_complete() const noexcept { return is_complete_; }

    off_t size() const noexcept { return size_; }

    /* Ends it; `is_all`: nothing else follows, as it would in a subrequest. */
    ngx_chain_t *chain(bool is_all) noexcept;

  private:
    ngx_buf_t *add_buffer(ngx_buf_t *buffer) noexcept;

    ngx_pool_t *pool_;
    ngx_chain_t *first_;
    ngx_chain_t **next_;
    ngx_buf_t *last_; /* nullptr: none that can be written to */
    ngx_buf_t *final_;
    off_t size_;
    bool is_complete_;
};

}  // namespace sl
