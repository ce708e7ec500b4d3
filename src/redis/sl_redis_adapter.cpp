#include "redis/sl_redis_adapter.h"

#include <sys/ioctl.h>

#include <cstdio>
#include <new>

#include "redis/sl_redis_tls.h"

namespace sl {

namespace {

/*
 * Level-triggered in both directions, always: hiredis reads at most 16 KB per
 * call and hides EAGAIN, so after an edge the rest of a burst would wait for
 * more to come. nginx keeps these flags per socket: the same everywhere.
 */
constexpr ngx_uint_t kEventFlags = NGX_LEVEL_EVENT;

/*
 * Unparsed input above this is no answer to anything the module asks: the map
 * of a cluster with a thousand nodes is far smaller. hiredis itself would go on
 * buffering for as long as a bulk header promises more.
 */
constexpr size_t kMaxUnparsed = 1024 * 1024;

/* A megabyte at a time: more than the replies to all that can be under way. */
constexpr ngx_uint_t kMaxReads = 64;

struct Adapter {
    redisAsyncContext *ac;
    ngx_connection_t *c;
    void (*on_shutdown)(redisAsyncContext *) noexcept;
};

/*
 * The adapter whose output hiredis is writing right now, so that add_write()
 * can tell "the socket is full" from "a new command". Only compared.
 */
const Adapter *writing = nullptr;

/* The adapter that is being read from; nullptr once it has been freed. */
const Adapter *reading = nullptr;

/* Frees the context with a reason that the disconnect callback will see. */
void give_up(redisAsyncContext *ac, const char *reason)
{
    ac->c.err = REDIS_ERR_PROTOCOL;
    snprintf(ac->c.errstr, sizeof(ac->c.errstr), "%s", reason);

    redisAsyncFree(ac);
}

bool peek(redisAsyncContext *ac, char *byte)
{
    return has_tls(ac) ? peek_decrypted(ac, byte)
                       : recv(ac->c.fd, byte, 1, MSG_PEEK) == 1;
}

/*
 * hiredis asserts that every reply but an error was asked for. Nothing is
 * outstanding here, so whatever can be read is such a reply, or the end.
 */
bool is_unsolicited(redisAsyncContext *ac)
{
    char byte;

    return ac->replies.head == nullptr && (ac->c.flags & REDIS_CONNECTED)
           && peek(ac, &byte) && byte != '-';
}

bool has_input(const redisAsyncContext *ac)
{
    int bytes = 0;

    return has_decrypted_input(ac)
           || (ioctl(ac->c.fd, FIONREAD, &bytes) == 0 && bytes > 0);
}

/*
 * hiredis reads 16 KB at a time. All that is there is read before anything
 * else happens: timers come next, and a reply that has arrived is in time.
 */
void read_all(Adapter *adapter)
{
    redisAsyncContext *ac = adapter->ac;

    for (ngx_uint_t n = 0; n < kMaxReads; n++) {
        if (ac->c.reader->len - ac->c.reader->pos > kMaxUnparsed) {
            give_up(ac, "the reply is too large");
            return;
        }

        if (is_unsolicited(ac)) {
            give_up(ac, "a reply came that nothing asked for");
            return;
        }

        reading = adapter;
        redisAsyncHandleRead(ac);

        if (reading != adapter) {
            /* it has freed the context, and this adapter with it */
            return;
        }

        reading = nullptr;

        if (!has_input(ac)) {
            return;
        }
    }
}

void on_readable(ngx_event_t *ev) noexcept
{
    auto *c = static_cast<ngx_connection_t *>(ev->data);
    auto *adapter = static_cast<Adapter *>(c->data);

    if (c->close) {
        adapter->on_shutdown(adapter->ac);
        return;
    }

    read_all(adapter);
}

void on_writable(ngx_event_t *ev) noexcept
{
    auto *c = static_cast<ngx_connection_t *>(ev->data);
    auto *adapter = static_cast<Adapter *>(c->data);

    writing = adapter;
    /* may free the context and this adapter with it */
    redisAsyncHandleWrite(adapter->ac);
    writing = nullptr;
}

void add_read(void *data) noexcept
{
    ngx_event_t *rev = static_cast<Adapter *>(data)->c->read;

    if (!rev->active) {
        ngx_add_event(rev, NGX_READ_EVENT, kEventFlags);
    }
}

void del_read(void *data) noexcept
{
    ngx_event_t *rev = static_cast<Adapter *>(data)->c->read;

    if (rev->active) {
        ngx_del_event(rev, NGX_READ_EVENT, kEventFlags);
    }
}

/*
 * On an open connection the write is only posted: all commands of this turn of
 * the event loop leave in one write(), without a visit to epoll. While it is
 * still connecting only a real event can tell that it is open.
 */
void add_write(void *data) noexcept
{
    auto *adapter = static_cast<Adapter *>(data);
    ngx_event_t *wev = adapter->c->write;

    if (wev->active) {
        return;
    }

    if ((adapter->ac->c.flags & REDIS_CONNECTED) && writing != adapter) {
        ngx_post_event(wev, &ngx_posted_events);
        return;
    }

    ngx_add_event(wev, NGX_WRITE_EVENT, kEventFlags);
}

void del_write(void *data) noexcept
{
    ngx_event_t *wev = static_cast<Adapter *>(data)->c->write;

    if (wev->active) {
        ngx_del_event(wev, NGX_WRITE_EVENT, kEventFlags);
    }
}

/* hiredis closes the socket afterwards: nginx must only forget it. */
void cleanup(void *data) noexcept
{
    auto *adapter = static_cast<Adapter *>(data);
    ngx_connection_t *c = adapter->c;

    del_read(adapter);
    del_write(adapter);

    if (c->read->posted) {
        ngx_delete_posted_event(c->read);
    }

    if (c->write->posted) {
        ngx_delete_posted_event(c->write);
    }

    ngx_free_connection(c);
    c->fd = (ngx_socket_t)-1;

    if (reading == adapter) {
        reading = nullptr;
    }

    adapter->ac->ev.data = nullptr;
    delete adapter;
}

}  // namespace

bool attach_to_event_loop(
    redisAsyncContext *ac, ngx_log_t *log,
    void (*on_shutdown)(redisAsyncContext *) noexcept) noexcept
{
    auto *adapter = new (std::nothrow) Adapter{ac, nullptr, on_shutdown};

    if (adapter == nullptr) {
        return false;
    }

    ngx_connection_t *c = ngx_get_connection(ac->c.fd, log);

    if (c == nullptr) {
        delete adapter;
        return false;
    }

    adapter->c = c;

    c->data = adapter;
    c->read->handler = on_readable;
    c->write->handler = on_writable;
    c->read->log = log;
    c->write->log = log;

    ac->ev.data = adapter;
    ac->ev.addRead = add_read;
    ac->ev.delRead = del_read;
    ac->ev.addWrite = add_write;
    ac->ev.delWrite = del_write;
    ac->ev.cleanup = cleanup;

    return true;
}

void write_waiting_output(redisAsyncContext *ac) noexcept
{
    ngx_event_t *wev = static_cast<Adapter *>(ac->ev.data)->c->write;

    if (wev->posted) {
        ngx_delete_posted_event(wev);
        on_writable(wev);
    }
}

void read_waiting_input(redisAsyncContext *ac) noexcept
{
    if ((ac->c.flags & REDIS_CONNECTED) && has_input(ac)) {
        read_all(static_cast<Adapter *>(ac->ev.data));
    }
}

}  // namespace sl
