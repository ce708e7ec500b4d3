#include "usage/sl_usage.h"

#include <new>

#include "base/pure/sl_words.h"
#include "base/sl_header.h"
#include "usage/pure/sl_usage_format.h"

/* A request's context of the module itself is its check. */
extern "C" ngx_module_t ngx_http_sliding_limit_last_filter_module;

namespace sl {

namespace {

/* By this a scanner is found among what belongs to a request. */
void mark_scanner(void *) noexcept {}

/*
 * Belongs to one response: an internal redirect, after which there will be
 * another, clears the context. After that of post_action there is none, and
 * what has been read is still wanted.
 */
UsageScanner *scanner_of(ngx_http_request_t *r)
{
    auto *scanner = static_cast<UsageScanner *>(ngx_http_get_module_ctx(
        r->main, ngx_http_sliding_limit_last_filter_module));

    if (scanner != nullptr || !r->main->post_action) {
        return scanner;
    }

    for (ngx_pool_cleanup_t *c = r->main->pool->cleanup; c; c = c->next) {
        if (c->handler == mark_scanner) {
            return static_cast<UsageScanner *>(c->data);
        }
    }

    return nullptr;
}

/* Who asks for the head alone gets no document, and of one that nginx puts
 * together (slice) only the first part passes here. */
bool has_document(ngx_http_request_t *r)
{
    return r == r->main && !r->header_only && !r->post_action
           && !r->subrequest_ranges;
}

bool is_compressed(ngx_http_request_t *r)
{
    const ngx_table_elt_t *encoding = r->headers_out.content_encoding;

    return encoding != nullptr && encoding->value.len != 0
           && !is_same_word(view(encoding->value), "identity");
}

/* Whether a response with status 206 has all of the document: "Range: bytes=0-"
 * asks for that. */
bool is_whole_document(ngx_http_request_t *r)
{
    bool is_whole = false;

    for_each_header(r->headers_out.headers, "content-range",
                    [&](const ngx_table_elt_t &header) {
                        is_whole = header.hash != 0
                                   && is_whole_range(view(header.value));
                    });

    return is_whole;
}

void warn_of_compression(ngx_http_request_t *r, UsageSettings *settings)
{
    if (settings->has_warned) {
        return;
    }

    settings->has_warned = true;
    ngx_log_error(NGX_LOG_WARN, r->connection->log, 0,
                  "sliding_limit: sliding_limit_usage cannot read a response "
                  "with \"Content-Encoding: %V\"; to have the upstream send it "
                  "plain: proxy_set_header Accept-Encoding \"\";",
                  &r->headers_out.content_encoding->value);
}

}  // namespace

void begin_to_read_usage(ngx_http_request_t *r,
                         UsageSettings *settings) noexcept
{
    UsageScanner::Format format;

    if (settings->paths.is_empty() || !has_document(r)
        || !has_usage_format(view(r->headers_out.content_type), &format))
    {
        return;
    }

    if (is_compressed(r)) {
        warn_of_compression(r, settings);
        return;
    }

    ngx_pool_cleanup_t *place =
        ngx_pool_cleanup_add(r->pool, sizeof(UsageScanner));

    if (place == nullptr) {
        return;
    }

    auto *scanner = new (place->data) UsageScanner(settings->paths, format);

    place->handler = mark_scanner;

    ngx_http_set_ctx(r, scanner, ngx_http_sliding_limit_last_filter_module);

    /* not to be sent from a file without being read */
    r->filter_need_in_memory = 1;
}

void forget_usage_of_part(ngx_http_request_t *r) noexcept
{
    if (r == r->main && r->headers_out.status == NGX_HTTP_PARTIAL_CONTENT
        && !is_whole_document(r))
    {
        ngx_http_set_ctx(r, nullptr, ngx_http_sliding_limit_last_filter_module);
    }
}

void read_usage(ngx_http_request_t *r, const ngx_chain_t *body) noexcept
{
    UsageScanner *scanner = r == r->main ? scanner_of(r) : nullptr;

    if (scanner == nullptr) {
        return;
    }

    for (; body != nullptr; body = body->next) {
        const ngx_buf_t *buf = body->buf;

        if (ngx_buf_in_memory(buf)) {
            scanner->feed(view(buf->pos, buf->last));
        }
    }
}

int64_t usage_of(ngx_http_request_t *r) noexcept
{
    const UsageScanner *scanner = scanner_of(r);

    return scanner != nullptr ? scanner->usage() : kNoUsage;
}

}  // namespace sl
