/*
 * A password, which may stand in a file that is written anew now and then: a
 * managed Redis gives tokens that live for minutes.
 *
 * The file is read first by the process that starts nginx, which may be root. A
 * worker looks at it again and again. Where a worker cannot read it, or it has
 * no password, the last one that was read stays in use.
 */

#pragma once

#include "base/sl_nginx.h"

namespace sl {

/* What is read from a file whose first line is a password. */
class PasswordFile {
  public:
    /* The file must be shorter. */
    static constexpr size_t kRoom = 4096;

    /* False: fault() says why. The name must be NUL-terminated. */
    bool load(const ngx_str_t &name) noexcept;

    std::string_view password() const noexcept { return {text_, size_}; }

    /* What is wrong, as a format with %V for the name of the file; and what the
     * system says about it, or 0. */
    const char *fault() const noexcept { return fault_; }
    ngx_err_t error() const noexcept { return error_; }

  private:
    bool fail(const char *fault, ngx_err_t error = 0) noexcept;

    char text_[kRoom];
    size_t size_;
    const char *fault_;
    ngx_err_t error_;
};

class RedisPassword {
  public:
    /* `text` is the password as it is now. `file` is where it is from,
     * NUL-terminated; empty: it never changes. Both outlive this object. */
    RedisPassword(const ngx_str_t &text, const ngx_str_t &file) noexcept;

    RedisPassword(const RedisPassword &) = delete;
    RedisPassword &operator=(const RedisPassword &) = delete;

    std::string_view text() const noexcept { return text_; }

    /* The one before it; empty: there was none. */
    std::string_view previous() const noexcept { return previous_; }

    const ngx_str_t &file() const noexcept { return file_; }

    /* How often it has changed. */
    unsigned changes() const noexcept { return changes_; }

    /* Reads the file if it may have changed. */
    void refresh() noexcept;

    /* A server refuses it. True if that is worth a line in the log: all servers
     * tell all workers the same. */
    bool note_refusal() noexcept;

  private:
    bool may_differ(const ngx_file_info_t &now) const noexcept;
    void accept(std::string_view text) noexcept;
    void keep(const char *fault, ngx_err_t error) noexcept;

    std::string_view text_;
    std::string_view previous_;
    ngx_str_t file_;
    unsigned changes_;
    bool is_refused_;

    /* The file as it was when it was read last. */
    ngx_file_info_t seen_;

    /* What is wrong with it; nullptr: nothing. */
    const char *fault_;

    /* Passwords from the file are put here in turn. */
    char room_[2][PasswordFile::kRoom];
};

}  // namespace sl
