#include "monitor/sl_change_report.h"

#include "base/pure/sl_escape.h"
#include "base/pure/sl_words.h"
#include "request/sl_recording.h"

namespace sl {

namespace {

/* A piece of a log line. */
template <size_t kSize>
struct Piece {
    u_char text[kSize];
    size_t size = 0;

    ngx_str_t str() noexcept { return {size, text}; }
};

ZoneChange kind_of(const Intervention &intervention)
{
    bool is_lifted = intervention.for_us == 0;

    switch (intervention.act) {
    case Act::kBan:
        return is_lifted ? ZoneChange::kUnbanned : ZoneChange::kBanned;

    case Act::kOverride:
        return is_lifted ? ZoneChange::kOverrideLifted
                         : ZoneChange::kOverridden;

    default:
        return ZoneChange::kForgotten;
    }
}

/* Writes no more of the text than there is room for, however it is escaped. */
template <size_t kSize>
void write_escaped(std::string_view text, Piece<kSize> *piece)
{
    constexpr size_t kMost = kSize / kLongestEscape - 1;

    bool is_cut = text.size() > kMost;
    char *begin = chars(piece->text);
    char *end = escape_log(text.substr(0, kMost), begin);

    end = append(end, is_cut ? "..." : "");
    piece->size = static_cast<size_t>(end - begin);
}

/* A key may be a secret of the client's: where the location does not show it,
 * the log does not either. */
template <size_t kSize>
void write_key(ngx_http_request_t *r, std::string_view key, Piece<kSize> *piece)
{
    const Metrics *metrics = main_conf(r)->recorder->metrics();
    char masked[kMaxMaskedKey];

    if (location_conf(r)->metrics.keys_shown == kPlainKeys) {
        write_escaped(key, piece);
    } else {
        write_escaped({masked, mask_key(metrics->hash_of(key), key, masked)},
                      piece);
    }
}

/* The address, and who logged in from there. */
template <size_t kSize>
void write_operator(ngx_http_request_t *r, Piece<kSize> *piece)
{
    Piece<256> user;
    u_char *end =
        ngx_snprintf(piece->text, kSize, "%V", &r->connection->addr_text);

    if (ngx_http_auth_basic_user(r) == NGX_OK && r->headers_in.user.len > 0) {
        write_escaped(view(r->headers_in.user), &user);

        ngx_str_t name = user.str();

        end = ngx_slprintf(end, piece->text + kSize, " (user \"%V\")", &name);
    }

    piece->size = static_cast<size_t>(end - piece->text);
}

template <size_t kSize>
void write_deed(ngx_http_request_t *r, const Change &change,
                Piece<kSize> *piece)
{
    const Intervention &what = change.intervention;
    int64_t seconds = what.for_us / 1000000;
    Piece<1024> key;
    u_char *end = piece->text;

    write_key(r, change.key, &key);

    ngx_str_t client = key.str();
    ngx_str_t zone = change.zone.name;

    switch (kind_of(what)) {
    case ZoneChange::kForgotten:
        end = ngx_snprintf(end, kSize, "reset client \"%V\" of zone \"%V\"",
                           &client, &zone);
        break;

    case ZoneChange::kBanned:
        end = ngx_snprintf(end, kSize,
                           "banned client \"%V\" of zone \"%V\" for %L s",
                           &client, &zone, seconds);
        break;

    case ZoneChange::kUnbanned:
        end = ngx_snprintf(end, kSize,
                           "lifted the ban of client \"%V\" of zone \"%V\"",
                           &client, &zone);
        break;

    case ZoneChange::kOverridden:
        end = ngx_snprintf(end, kSize,
                           "set the max of client \"%V\" of zone \"%V\" to "
                           "%L for %L s",
                           &client, &zone, what.max, seconds);
        break;

    case ZoneChange::kOverrideLifted:
        end = ngx_snprintf(
            end, kSize, "lifted the override of client \"%V\" of zone \"%V\"",
            &client, &zone);
        break;
    }

    piece->size = static_cast<size_t>(end - piece->text);
}

void log_change(ngx_http_request_t *r, const Change &change, const char *before,
                const char *after)
{
    Piece<512> who;
    Piece<1400> deed;

    write_operator(r, &who);
    write_deed(r, change, &deed);

    ngx_str_t who_text = who.str();
    ngx_str_t deed_text = deed.str();

    /* nginx would add the request, in which the key stands in full */
    ngx_log_t log = *r->connection->log;

    log.handler = nullptr;
    ngx_log_error(NGX_LOG_NOTICE, &log, 0, "sliding_limit: %V%s %V%s",
                  &who_text, before, &deed_text, after);
}

}  // namespace

void report_change(ngx_http_request_t *r, const Change &change) noexcept
{
    ZoneMetrics *metrics = main_conf(r)->recorder->zone(change.zone);

    if (metrics != nullptr) {
        add(metrics
                ->changes[static_cast<size_t>(kind_of(change.intervention))]);
    }

    /* a client that is let go is not to be refused from memory */
    main_conf(r)->deny_cache->forget_all(change.zone.refusal_mark);

    log_change(r, change, "", "");
}

void report_uncertain_change(ngx_http_request_t *r, const Change &change,
                             const char *why) noexcept
{
    log_change(r, change, " may have", why);
}

}  // namespace sl
