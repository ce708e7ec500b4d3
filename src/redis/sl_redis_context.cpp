#include "redis/sl_redis_context.h"

#include <memory>
#include <new>

#include "redis/sl_command_writer.h"
#include "redis/sl_redis_adapter.h"
#include "redis/sl_redis_tls.h"

namespace sl {

namespace {

/* The answers to checks are strings. No other reply that is not for operators
 * is larger, or has more arrays inside each other, than the one to ROLE. */
constexpr size_t kMaxElements = 64;
constexpr int kMaxDepth = 3;

/* Operators are told more: an array of numbers and texts, which may be in
 * another one. */
constexpr int kMaxDepthOfLarge = 2;

/*
 * hiredis allocates whatever arrays a server announces, and 0.14 walks them
 * when freeing. Nothing that is asked for is answered with many large ones.
 * This is a template because hiredis 1.0 changed the type of the count.
 */
redisReplyObjectFunctions *default_functions;

bool is_large(size_t elements)
{
    return elements > kMaxElements;
}

template <typename Count>
void *create_small_array(const redisReadTask *task, Count elements) noexcept
{
    auto count = static_cast<size_t>(elements);
    int depth = 1;
    bool is_in_large = false;

    for (const redisReadTask *t = task->parent; t != nullptr; t = t->parent) {
        depth++;
        is_in_large |= is_large(static_cast<size_t>(t->elements));
    }

    if (count > kMaxReplyElements || is_in_large
        || depth > (is_large(count) ? kMaxDepthOfLarge : kMaxDepth))
    {
        return nullptr;
    }

    return default_functions->createArray(task, elements);
}

void limit_reply_size(redisAsyncContext *ac)
{
    static redisReplyObjectFunctions limited = [ac] {
        default_functions = ac->c.reader->fn;

        redisReplyObjectFunctions fn = *default_functions;
        fn.createArray = create_small_array;
        return fn;
    }();

    ac->c.reader->fn = &limited;
}

void set_reason(OpenedContext *opened, Trouble trouble, const char *reason)
{
    opened->trouble = trouble;
    ngx_cpystrn(bytes(opened->reason), str(reason).data,
                sizeof(opened->reason));
}

bool is_reset(const redisAsyncContext *ac)
{
    return ac->c.err == REDIS_ERR_IO
           && std::string_view(ac->c.errstr) == strerror(ECONNRESET);
}

}  // namespace

OpenedContext open_context(
    const RedisEndpoint &endpoint, const RedisTls *tls,
    void (*on_shutdown)(redisAsyncContext *) noexcept) noexcept
{
    OpenedContext opened{};
    const char *host = chars(endpoint.host.data);

    errno = 0;

    redisAsyncContext *ac = endpoint.port == 0
                                ? redisAsyncConnectUnix(host)
                                : redisAsyncConnect(host, endpoint.port);

    if (ac == nullptr) {
        set_reason(&opened, Trouble::kLocal, "out of memory");
        return opened;
    }

    if (ac->err) {
        bool is_local = errno == EMFILE || errno == ENFILE;

        set_reason(&opened, is_local ? Trouble::kLocal : Trouble::kUnreachable,
                   ac->errstr);
        redisAsyncFree(ac);
        return opened;
    }

    limit_reply_size(ac);

    if (tls != nullptr && !start_tls(ac, *tls, endpoint)) {
        set_reason(&opened, Trouble::kUnreachable, ac->c.errstr);
        redisAsyncFree(ac);
        return opened;
    }

    if (!attach_to_event_loop(ac, ngx_cycle->log, on_shutdown)) {
        set_reason(&opened, Trouble::kLocal, "no free worker_connections");
        redisAsyncFree(ac);
        return opened;
    }

    opened.ac = ac;

    return opened;
}

void watch_peer(redisAsyncContext *ac) noexcept
{
    auto set = [ac](int level, int option, int value) {
        /* if that fails the connection works all the same */
        (void)setsockopt(ac->c.fd, level, option, &value, sizeof(value));
    };

    set(SOL_SOCKET, SO_KEEPALIVE, 1);
#if defined(TCP_KEEPIDLE) && defined(TCP_KEEPINTVL) && defined(TCP_KEEPCNT)
    set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
    set(IPPROTO_TCP, TCP_KEEPCNT, 5);
#endif
#ifdef TCP_USER_TIMEOUT
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, 10000);
#endif
}

/*
 * hiredis 0.14 does not tell that it had no memory for the callback: the reply
 * would be given to another. Later versions do, but then nothing makes them end
 * the connection, which is of no use any more.
 */
bool send_command(redisAsyncContext *ac, redisCallbackFn *on_reply, void *data,
                  std::string_view text) noexcept
{
    if (ac->c.flags & (REDIS_DISCONNECTING | REDIS_FREEING)) {
        return false;
    }

    const redisCallback *last = ac->replies.tail;

    redisAsyncFormattedCommand(ac, on_reply, data, text.data(), text.size());

    if (ac->replies.tail != last) {
        return true;
    }

    /* the next write, of which nothing is sent, ends it */
    ac->c.err = REDIS_ERR_OOM;
    ac->ev.addWrite(ac->ev.data);

    return false;
}

/* hiredis 0.14 does not expect to be without memory when it writes words. */
bool send_words(redisAsyncContext *ac, redisCallbackFn *on_reply, void *data,
                std::initializer_list<std::string_view> words) noexcept
{
    size_t room = CommandWriter::kAroundWord;

    for (std::string_view word : words) {
        room += CommandWriter::kAroundWord + word.size();
    }

    std::unique_ptr<char[]> text(new (std::nothrow) char[room]);

    if (text == nullptr) {
        return false;
    }

    CommandWriter command(text.get(), words.size());

    for (std::string_view word : words) {
        command.add(word);
    }

    return send_command(ac, on_reply, data, {text.get(), command.size()});
}

std::string_view reason_of(const redisAsyncContext *ac,
                           bool has_answered) noexcept
{
    /* so hiredis calls it, too, if create_small_array() refuses */
    if (ac->c.err == REDIS_ERR_OOM) {
        return "out of memory, or a reply unlike any that was asked for";
    }

    /*
     * So ends a connection without TLS to a server that expects it. And one
     * with a certificate that the server does not like: it says so before, but
     * that is lost if it was quicker than the event which tells that the
     * connection is open.
     */
    if (!has_answered && is_reset(ac)) {
        return has_tls(ac) ? "connection reset before the first answer; does "
                             "it accept the certificate of this nginx?"
                           : "connection reset before the first answer; does "
                             "it expect TLS at this port?";
    }

    return ac->c.err ? ac->c.errstr : "connection closed";
}

/* A Redis without TLS takes a handshake for a command that has no end yet, and
 * waits for the rest. */
std::string_view reason_of_silence(const redisAsyncContext *ac,
                                   bool has_answered) noexcept
{
    return !has_answered && is_shaking_hands(ac)
                   && (ac->c.flags & REDIS_CONNECTED)
               ? "no TLS handshake within connect_timeout; does it speak TLS "
                 "at this port?"
               : "no answer within connect_timeout";
}

}  // namespace sl
