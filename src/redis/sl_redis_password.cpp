#include "redis/sl_redis_password.h"

#include <utility>

namespace sl {

namespace {

constexpr char kCannotOpen[] = "cannot open password_file \"%V\"";
constexpr char kCannotRead[] = "cannot read password_file \"%V\"";
constexpr char kHasNone[] =
    "password_file \"%V\" must have a password in its first line, and less "
    "than 4096 bytes";

static_assert(PasswordFile::kRoom == 4096, "the message says it, too");

/* File systems keep times with a precision of up to two seconds. */
constexpr time_t kSettledSeconds = 3;

/* All workers have the same rights and see the same file: one speaks for all.
 */
bool speaks_for_all()
{
    return ngx_worker == 0;
}

}  // namespace

/* ---- the file ---- */

bool PasswordFile::load(const ngx_str_t &name) noexcept
{
    ngx_fd_t fd = ngx_open_file(name.data, NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);

    if (fd == NGX_INVALID_FILE) {
        return fail(kCannotOpen, ngx_errno);
    }

    ssize_t n = ngx_read_fd(fd, text_, kRoom);
    ngx_err_t error = n < 0 ? ngx_errno : 0;

    ngx_close_file(fd);

    if (n < 0) {
        return fail(kCannotRead, error);
    }

    std::string_view content(text_, static_cast<size_t>(n));
    std::string_view line = content.substr(0, content.find_first_of("\r\n"));

    size_ = line.size();

    /* after a crash a file may consist of zeros */
    bool is_password = !line.empty() && line.find('\0') == line.npos;

    return (is_password && content.size() < kRoom) || fail(kHasNone);
}

bool PasswordFile::fail(const char *fault, ngx_err_t error) noexcept
{
    fault_ = fault;
    error_ = error;

    return false;
}

/* ---- the password ---- */

RedisPassword::RedisPassword(const ngx_str_t &text,
                             const ngx_str_t &file) noexcept
    : text_(view(text)), file_(file), changes_(0), is_refused_(false), seen_(),
      fault_(nullptr), room_()
{}

bool RedisPassword::note_refusal() noexcept
{
    return !std::exchange(is_refused_, true) && speaks_for_all();
}

/* A pipe, such as a shell's <(command), has been read to its end: opening it
 * again would wait for a writer. */
void RedisPassword::refresh() noexcept
{
    ngx_file_info_t now;

    if (file_.len == 0) {
        return;
    }

    if (ngx_file_info(file_.data, &now) == NGX_FILE_ERROR) {
        seen_ = {};
        keep(kCannotOpen, ngx_errno);
        return;
    }

    if (!ngx_is_file(&now) || !may_differ(now)) {
        return;
    }

    PasswordFile file;

    seen_ = now;

    if (file.load(file_)) {
        accept(file.password());
    } else {
        keep(file.fault(), file.error());
    }
}

/* The time is that of the last change of anything, also of the rights. A file
 * that looks the same may have been written twice within the precision of that
 * time, unless that is past. */
bool RedisPassword::may_differ(const ngx_file_info_t &now) const noexcept
{
    return ngx_file_uniq(&now) != ngx_file_uniq(&seen_)
           || ngx_file_size(&now) != ngx_file_size(&seen_)
           || now.st_ctime != seen_.st_ctime
           || ngx_time() - now.st_ctime < kSettledSeconds;
}

void RedisPassword::accept(std::string_view text) noexcept
{
    bool is_new = text != text_;

    if (is_new) {
        char *room = room_[changes_++ % 2];

        previous_ = text_;
        text_ = {room, text.copy(room, sizeof(room_[0]))};
        is_refused_ = false;
    }

    if ((is_new || fault_ != nullptr) && speaks_for_all()) {
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "sliding_limit: password_file \"%V\" %s", &file_,
                      is_new ? "has a new password" : "can be read again");
    }

    fault_ = nullptr;
}

void RedisPassword::keep(const char *fault, ngx_err_t error) noexcept
{
    if (fault_ == fault) {
        return;
    }

    fault_ = fault;

    if (speaks_for_all()) {
        u_char text[NGX_MAX_ERROR_STR];
        ngx_str_t what =
            str(view(text, ngx_snprintf(text, sizeof(text), fault, &file_)));

        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, error,
                      "sliding_limit: %V; the last password that was read from "
                      "it stays in use",
                      &what);
    }
}

}  // namespace sl
