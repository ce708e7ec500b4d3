/* A text of any length that is written piece by piece, and then sent. */

#pragma once

#include "base/sl_nginx.h"

namespace sl {

/*
 * Collects the text in buffers of the pool, a new one whenever the last is
 * full. What goes wrong on the way (there is no memory) shows at the end, in
 * is_complete(); nobody has to look before.
 */
class Output {
  public:
    explicit Output(ngx_pool_t *pool) noexcept;

    /* These append a copy. */
    Output &operator<<(std::string_view piece) noexcept;
    Output &operator<<(uint64_t number) noexcept;
    Output &operator<<(int64_t number) noexcept;

    /* Appends a text that is never freed, without copying it. */
    void refer(std::string_view lasting) noexcept;

    /* Appends seconds, with six decimals at most and without needless ones. */
    Output &seconds(uint64_t microseconds) noexcept;

    /* Appends a JSON string of at most 256 bytes of `text`, in which markup is
     * escaped, too. */
    Output &json_string(std::string_view text) noexcept;

    /* The same for a text of any length. */
    Output &long_json_string(std::string_view text) noexcept;

    /* Appends it as a part of such a string, without the quotes. */
    Output &json_text(std::string_view text) noexcept;

    /* False: out of memory, and something is missing. */
    bool is_complete() const noexcept { return is_complete_; }

    off_t size() const noexcept { return size_; }

    /*
     * The buffers, to be sent. `is_all`: the response ends with them; after
     * those of a subrequest more may follow.
     */
    ngx_chain_t *chain(bool is_all) noexcept;

  private:
    ngx_buf_t *add_buffer(ngx_buf_t *buffer) noexcept;

    ngx_pool_t *pool_;
    ngx_chain_t *first_;
    ngx_chain_t **next_; /* where the next link is to be entered */
    ngx_buf_t *last_;    /* the one being filled; nullptr: there is none */
    ngx_buf_t *final_;   /* the last in the chain; nullptr: it is empty */
    off_t size_;
    bool is_complete_;
};

}  // namespace sl
