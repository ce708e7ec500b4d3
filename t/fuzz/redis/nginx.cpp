#include "redis/nginx.h"

#include <arpa/inet.h>
#include <poll.h>

#include <cstdarg>
#include <list>
#include <memory>
#include <vector>

#include "fuzz.h"
#include "redis/network.h"
#include "redis/sl_redis_tls.h"

/* ---- what src/redis finds of nginx ---- */

ngx_module_t ngx_http_sliding_limit_module;
ngx_uint_t ngx_pagesize = 4096;
ngx_uint_t ngx_worker;
ngx_pid_t ngx_pid = 1;
volatile ngx_cycle_t *ngx_cycle;
volatile ngx_msec_t ngx_current_msec;
volatile ngx_time_t *ngx_cached_time;
ngx_event_actions_t ngx_event_actions;
ngx_rbtree_t ngx_event_timer_rbtree;
ngx_queue_t ngx_posted_events;

namespace {

struct Place {
    bool is_used;
    ngx_connection_t c;
    ngx_event_t read;
    ngx_event_t write;
};

ngx_cycle_t cycle;
ngx_log_t a_log;
Place places[fuzz::kWorkerConnections];

/* In the order in which they were set. */
std::vector<ngx_rbtree_node_t *> timers;

ngx_resolver_t a_resolver;
std::list<ngx_resolver_ctx_t *> lookups;

ngx_shm_zone_t a_zone;
std::unique_ptr<char[]> zone_name;
std::unique_ptr<char[]> zone_memory;

ngx_event_t *event_of(ngx_rbtree_node_t *timer)
{
    return reinterpret_cast<ngx_event_t *>(reinterpret_cast<char *>(timer)
                                           - offsetof(ngx_event_t, timer));
}

ngx_int_t add_event(ngx_event_t *event, ngx_int_t, ngx_uint_t)
{
    check(!event->active);
    event->active = 1;

    return NGX_OK;
}

ngx_int_t delete_event(ngx_event_t *event, ngx_int_t, ngx_uint_t)
{
    check(event->active);
    event->active = 0;

    return NGX_OK;
}

}  // namespace

/* ---- text ---- */

/* The formats that src/redis uses, and no others. */
u_char *ngx_vslprintf(u_char *to, u_char *last, const char *format,
                      va_list args)
{
    std::string text;

    for (; *format != '\0'; format++) {
        if (*format != '%') {
            text += *format;
            continue;
        }

        switch (*++format) {
        case 'V':
            text += sl::view(*va_arg(args, ngx_str_t *));
            break;
        case 's':
            text += va_arg(args, const char *);
            break;
        case 'd':
            text += std::to_string(va_arg(args, int));
            break;
        case 'L':
            text += std::to_string(va_arg(args, int64_t));
            break;
        case 'u':
            check(*++format == 'i');
            text += std::to_string(va_arg(args, ngx_uint_t));
            break;
        default:
            check(!"a format that is not known");
        }
    }

    return to + text.copy(reinterpret_cast<char *>(to), last - to);
}

u_char *ngx_sprintf(u_char *to, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    u_char *end = ngx_vslprintf(to, to + 65536, format, args);
    va_end(args);

    return end;
}

u_char *ngx_snprintf(u_char *to, size_t room, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    u_char *end = ngx_vslprintf(to, to + room, format, args);
    va_end(args);

    return end;
}

u_char *ngx_slprintf(u_char *to, u_char *last, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    u_char *end = ngx_vslprintf(to, last, format, args);
    va_end(args);

    return end;
}

void ngx_log_error_core(ngx_uint_t, ngx_log_t *, ngx_err_t, const char *format,
                        ...)
{
    u_char line[NGX_MAX_ERROR_STR];
    va_list args;

    va_start(args, format);
    u_char *end = ngx_vslprintf(line, line + sizeof(line), format, args);
    va_end(args);

    fuzz::logged(sl::view(line, end));
}

u_char *ngx_cpystrn(u_char *to, u_char *from, size_t room)
{
    for (; room > 1 && *from != '\0'; room--) {
        *to++ = *from++;
    }

    *to = '\0';

    return to;
}

ngx_int_t ngx_atoi(u_char *text, size_t size)
{
    ngx_int_t number = size == 0 ? NGX_ERROR : 0;

    for (; size > 0 && number != NGX_ERROR; size--, text++) {
        if (*text < '0' || *text > '9' || number > 100000000) {
            number = NGX_ERROR;
        } else {
            number = number * 10 + (*text - '0');
        }
    }

    return number;
}

/* What the script is called does not matter, as long as it is the same. */
void ngx_sha1_init(ngx_sha1_t *) {}
void ngx_sha1_update(ngx_sha1_t *, const void *, size_t) {}

void ngx_sha1_final(u_char digest[20], ngx_sha1_t *)
{
    std::fill_n(digest, 20, 0xab);
}

u_char *ngx_hex_dump(u_char *to, u_char *from, size_t size)
{
    for (; size > 0; size--, from++) {
        *to++ = "0123456789abcdef"[*from >> 4];
        *to++ = "0123456789abcdef"[*from & 15];
    }

    return to;
}

size_t ngx_sock_ntop(struct sockaddr *address, socklen_t, u_char *to,
                     size_t room, ngx_uint_t)
{
    auto *in = reinterpret_cast<sockaddr_in *>(address);
    char *text = reinterpret_cast<char *>(to);

    check(inet_ntop(AF_INET, &in->sin_addr, text, room) != nullptr);

    return strlen(text);
}

/* ---- memory ---- */

void *ngx_pnalloc(ngx_pool_t *, size_t size)
{
    zone_name.reset(new char[size]);

    return zone_name.get();
}

ngx_shm_zone_t *ngx_shared_memory_add(ngx_conf_t *, ngx_str_t *, size_t size,
                                      void *)
{
    a_zone = ngx_shm_zone_t();
    a_zone.shm.size = size;

    return &a_zone;
}

/* From nginx's allocator it comes as it is: the owner has to clear it. */
void *ngx_slab_alloc(ngx_slab_pool_t *, size_t size)
{
    zone_memory.reset(new char[size]);
    std::fill_n(zone_memory.get(), size, '\xaa');

    return zone_memory.get();
}

/* ---- events ---- */

ngx_connection_t *ngx_get_connection(ngx_socket_t fd, ngx_log_t *log)
{
    for (Place &place : places) {
        if (place.is_used) {
            continue;
        }

        unsigned instance = !place.read.instance;

        place.is_used = true;
        place.c = ngx_connection_t();
        place.c.fd = fd;
        place.c.log = log;
        place.c.read = &place.read;
        place.c.write = &place.write;
        place.read = ngx_event_t();
        place.write = ngx_event_t();
        place.read.data = &place.c;
        place.write.data = &place.c;
        place.read.instance = instance;
        place.write.instance = instance;
        place.write.write = 1;

        return &place.c;
    }

    return nullptr;
}

void ngx_free_connection(ngx_connection_t *c)
{
    for (Place &place : places) {
        if (&place.c == c) {
            check(place.is_used && !place.read.active && !place.write.active
                  && !place.read.posted && !place.write.posted);
            place.is_used = false;
            return;
        }
    }

    check(!"a connection of the worker");
}

/* The tree is a list here: there are only few timers. */
void ngx_rbtree_insert(ngx_rbtree_t *, ngx_rbtree_node_t *timer)
{
    timers.push_back(timer);
}

void ngx_rbtree_delete(ngx_rbtree_t *, ngx_rbtree_node_t *timer)
{
    auto place = std::find(timers.begin(), timers.end(), timer);

    check(place != timers.end());
    timers.erase(place);
}

/* ---- names ---- */

ngx_resolver_ctx_t *ngx_resolve_start(ngx_resolver_t *, ngx_resolver_ctx_t *)
{
    return new ngx_resolver_ctx_t();
}

namespace {

void found(ngx_resolver_ctx_t *ctx)
{
    ngx_resolver_addr_t addresses[2] = {};
    sockaddr_in in[2] = {};

    for (int i = 0; i < 2; i++) {
        in[i].sin_family = AF_INET;
        in[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK + i);
        addresses[i].sockaddr = reinterpret_cast<sockaddr *>(&in[i]);
        addresses[i].socklen = sizeof(in[i]);
    }

    ctx->state = NGX_OK;
    ctx->naddrs = 2;
    ctx->addrs = addresses;
    ctx->handler(ctx);
}

}  // namespace

/* The name says what becomes of it: some are known at once, others later, and
 * of some there is no address. */
ngx_int_t ngx_resolve_name(ngx_resolver_ctx_t *ctx)
{
    for (size_t i = 0; i < ctx->name.len; i++) {
        ctx->name.data[i] = ngx_tolower(ctx->name.data[i]);
    }

    switch (ctx->name.data[0]) {
    case 'n':
        delete ctx;
        return NGX_ERROR;
    case 'k':
        found(ctx);
        return NGX_OK;
    default:
        lookups.push_back(ctx);
        return NGX_OK;
    }
}

void ngx_resolve_name_done(ngx_resolver_ctx_t *ctx)
{
    lookups.remove(ctx);
    delete ctx;
}

char *ngx_resolver_strerror(ngx_int_t)
{
    static char text[] = "Host not found";

    return text;
}

/* ---- there is no TLS ---- */

namespace sl {

bool start_tls(redisAsyncContext *, const RedisTls &,
               const RedisEndpoint &) noexcept
{
    return false;
}

bool has_tls(const redisAsyncContext *) noexcept
{
    return false;
}

bool is_shaking_hands(const redisAsyncContext *) noexcept
{
    return false;
}

bool has_decrypted_input(const redisAsyncContext *) noexcept
{
    return false;
}

bool peek_decrypted(const redisAsyncContext *, char *) noexcept
{
    return false;
}

}  // namespace sl

/* ---- the worker ---- */

namespace fuzz {

void start_worker()
{
    srandom(1);

    a_log.log_level = NGX_LOG_INFO;
    cycle.log = &a_log;
    ngx_cycle = &cycle;
    ngx_event_actions.add = add_event;
    ngx_event_actions.del = delete_event;
    ngx_current_msec = 1000000;
    ngx_queue_init(&ngx_posted_events);
}

namespace {

struct Ready {
    Place *place;
    unsigned instance;
    int what;
};

std::vector<Ready> ready_connections()
{
    std::vector<pollfd> asked;
    std::vector<Ready> ready;

    for (Place &place : places) {
        if (!place.is_used || !has_arrived(place.c.fd)) {
            continue;
        }

        short what = (place.read.active ? POLLIN : 0)
                     | (place.write.active ? POLLOUT : 0);

        if (what != 0) {
            asked.push_back({place.c.fd, what, 0});
            ready.push_back({&place, place.read.instance, 0});
        }
    }

    poll(asked.data(), asked.size(), 0);

    for (size_t i = 0; i < asked.size(); i++) {
        int what = asked[i].revents;

        ready[i].what = what & (POLLERR | POLLHUP) ? POLLIN | POLLOUT : what;
    }

    return ready;
}

/* A connection may have been closed, and its place given to another one, by a
 * handler that ran before. */
void run(const Ready &ready, int what, ngx_event_t *event)
{
    if ((ready.what & what) && ready.place->is_used && event->active
        && event->instance == ready.instance)
    {
        event->ready = 1;
        event->handler(event);
    }
}

void expire_timers()
{
    for (;;) {
        auto first =
            std::min_element(timers.begin(), timers.end(),
                             [](auto *a, auto *b) { return a->key < b->key; });

        if (first == timers.end() || (*first)->key > ngx_current_msec) {
            return;
        }

        ngx_event_t *event = event_of(*first);

        timers.erase(first);
        event->timer_set = 0;
        event->timedout = 1;
        event->handler(event);
    }
}

void run_posted()
{
    while (!ngx_queue_empty(&ngx_posted_events)) {
        ngx_queue_t *first = ngx_queue_head(&ngx_posted_events);
        ngx_event_t *event = ngx_queue_data(first, ngx_event_t, queue);

        ngx_delete_posted_event(event);
        event->handler(event);
    }
}

void answer_lookups()
{
    for (size_t n = lookups.size(); n > 0 && !lookups.empty(); n--) {
        ngx_resolver_ctx_t *ctx = lookups.front();

        lookups.pop_front();

        if (ctx->name.data[0] < 'u') {
            found(ctx);
        } else {
            ctx->state = NGX_RESOLVE_NXDOMAIN;
            ctx->handler(ctx);
        }
    }
}

}  // namespace

void turn(Pace pace)
{
    if (pace == Pace::kOrdinary) {
        answer_lookups();

        for (const Ready &ready : ready_connections()) {
            run(ready, POLLIN, &ready.place->read);
            run(ready, POLLOUT, &ready.place->write);
        }
    }

    expire_timers();
    run_posted();
}

void pass(ngx_msec_t time)
{
    ngx_current_msec += time;
}

void end_connections()
{
    for (Place &place : places) {
        if (place.is_used) {
            place.c.close = 1;
            place.c.error = 1;
            place.read.handler(&place.read);
        }
    }
}

void check_worker_is_done()
{
    check(timers.empty());
    check(ngx_queue_empty(&ngx_posted_events));
    check(lookups.empty());

    for (const Place &place : places) {
        check(!place.is_used);
    }

    zone_name.reset();
    zone_memory.reset();
}

ngx_resolver_t *resolver()
{
    return &a_resolver;
}

ngx_shm_zone_t &shared_memory()
{
    return a_zone;
}

}  // namespace fuzz
