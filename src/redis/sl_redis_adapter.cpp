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

/* At 16 KB each that is a megabyte: more than the replies to all calls that can
 * be under way. */
constexpr ngx_uint_t kMaxReads = 64;

class Visit;

struct Adapter {
    redisAsyncContext *ac;
    ngx_connection_t *c;
    void (*on_shutdown)(redisAsyncContext *) noexcept;

    /* The call of hiredis that is under way for it; nullptr: none. */
    Visit *visit;
};

/*
 * A call of hiredis, which may free the context, and the adapter with it. There
 * may be one inside another: a command that follows from a reply is written
 * while the reply is being read.
 */
class Visit {
  public:
    enum Kind { kReading, kWriting };

    Visit(Adapter *adapter, Kind kind) noexcept
        : adapter_(adapter), outer_(adapter->visit), kind_(kind)
    {
        adapter->visit = this;
    }

    ~Visit()
    {
        if (adapter_ != nullptr) {
            adapter_->visit = outer_;
        }
    }

    Visit(const Visit &) = delete;
    Visit &operator=(const Visit &) = delete;

    bool has_freed() const noexcept { return adapter_ == nullptr; }
    bool is_writing() const noexcept { return kind_ == kWriting; }

    /* To be called when the adapter is freed. */
    void freed() noexcept
    {
        for (Visit *visit = this; visit != nullptr; visit = visit->outer_) {
            visit->adapter_ = nullptr;
        }
    }

  private:
    Adapter *adapter_;
    Visit *outer_;
    Kind kind_;
};

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
 * hiredis asserts that every reply but an error was asked for. While nothing is
 * outstanding, whatever can be read is one that was not, or the end.
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

        Visit visit(adapter, Visit::kReading);

        redisAsyncHandleRead(ac);

        if (visit.has_freed() || !has_input(ac)) {
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

    Visit visit(adapter, Visit::kWriting);

    redisAsyncHandleWrite(adapter->ac);
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

    /* hiredis asks for it while it writes if the socket is full */
    bool is_full = adapter->visit != nullptr && adapter->visit->is_writing();

    if ((adapter->ac->c.flags & REDIS_CONNECTED) && !is_full) {
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
    c->fd = static_cast<ngx_socket_t>(-1);

    if (adapter->visit != nullptr) {
        adapter->visit->freed();
    }

    adapter->ac->ev.data = nullptr;
    delete adapter;
}

}  // namespace

bool attach_to_event_loop(
    redisAsyncContext *ac, ngx_log_t *log,
    void (*on_shutdown)(redisAsyncContext *) noexcept) noexcept
{
    auto *adapter =
        new (std::nothrow) Adapter{ac, nullptr, on_shutdown, nullptr};

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
