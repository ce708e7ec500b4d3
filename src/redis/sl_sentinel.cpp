#include "redis/sl_sentinel.h"

#include "redis/pure/sl_redis_error.h"
#include "redis/sl_redis_adapter.h"

namespace sl {

namespace {

/* What a Sentinel's error means: whether only a person can mend it. */
Trouble trouble_of(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR
                   && classify_redis_error(text_of(reply))
                          == RedisError::kForbidden
               ? Trouble::kForbidden
               : Trouble::kUnreachable;
}

}  // namespace

SentinelLocator::SentinelLocator(const RedisSettings &settings,
                                 ngx_uint_t &first) noexcept
    : settings_(settings), lookup_(settings), has_answered_(false), named_(),
      named_host_(), user_(nullptr), ac_(nullptr), timer_(), first_(first),
      current_(0), failed_(0), reason_()
{
    timer_.cancelable = 1;
    timer_.handler = on_timer;
    timer_.data = this;
    timer_.log = ngx_cycle->log;
}

SentinelLocator::~SentinelLocator()
{
    cancel();
}

void SentinelLocator::locate(LocatorUser &user) noexcept
{
    user_ = &user;
    current_ = first_;
    failed_ = 0;

    ask_next();
}

void SentinelLocator::cancel() noexcept
{
    user_ = nullptr;
    lookup_.cancel();
    drop_context();
}

/* Once, however many connections find out. */
void SentinelLocator::distrust() noexcept
{
    if (first_ == current_) {
        first_ = (first_ + 1) % settings_.endpoint_count;
    }
}

void SentinelLocator::ask_next() noexcept
{
    has_answered_ = false;
    lookup_.start(settings_.endpoints[current_], *this);
}

void SentinelLocator::not_located(Trouble trouble,
                                  std::string_view reason) noexcept
{
    if (!has_answered_) {
        try_another(trouble, reason);
        return;
    }

    u_char text[512];
    ngx_str_t why = str(reason);
    u_char *end = ngx_snprintf(text, sizeof(text), "it names %V", &why);

    try_another(trouble, {reinterpret_cast<char *>(text),
                          static_cast<size_t>(end - text)});
}

void SentinelLocator::located(const RedisEndpoint &where) noexcept
{
    has_answered_ ? found(where) : ask(where);
}

void SentinelLocator::ask(const RedisEndpoint &sentinel) noexcept
{
    OpenedContext opened = open_context(sentinel, settings_.tls, on_shutdown);

    if (opened.ac == nullptr) {
        try_another(opened.trouble, opened.reason);
        return;
    }

    ac_ = opened.ac;
    ac_->data = this;
    ngx_add_timer(&timer_, settings_.connect_timeout);

    const RedisLogin &login = settings_.sentinel_login;
    bool sent = true;

    if (login.password.len != 0 && login.user.len != 0) {
        sent = redisAsyncCommand(ac_, on_auth, nullptr, "AUTH %b %b",
                                 login.user.data, login.user.len,
                                 login.password.data, login.password.len)
               == REDIS_OK;

    } else if (login.password.len != 0) {
        sent = redisAsyncCommand(ac_, on_auth, nullptr, "AUTH %b",
                                 login.password.data, login.password.len)
               == REDIS_OK;
    }

    if (!sent
        || redisAsyncCommand(ac_, on_answer, nullptr,
                             "SENTINEL get-master-addr-by-name %b",
                             settings_.primary.data, settings_.primary.len)
               != REDIS_OK)
    {
        drop_context();
        try_another(Trouble::kLocal, "out of memory");
    }
}

void SentinelLocator::try_another(Trouble trouble,
                                  std::string_view reason) noexcept
{
    ngx_str_t why = str(reason);
    const RedisEndpoint &sentinel = settings_.endpoints[current_];
    ngx_str_t host = sentinel.host;
    u_char *end = reinterpret_cast<u_char *>(reason_) + sizeof(reason_);

    end = ngx_slprintf(reinterpret_cast<u_char *>(reason_), end,
                       "Sentinel %V:%d: %V", &host,
                       static_cast<int>(sentinel.port), &why);

    current_ = (current_ + 1) % settings_.endpoint_count;

    if (++failed_ < settings_.endpoint_count) {
        ask_next();
        return;
    }

    LocatorUser *user = user_;
    user_ = nullptr;

    if (user != nullptr) {
        user->not_located(
            trouble, {reason_, static_cast<size_t>(reinterpret_cast<char *>(end)
                                                   - reason_)});
    }
}

void SentinelLocator::answered(const redisReply *reply) noexcept
{
    char why[512];
    u_char *why_end = nullptr;

    auto fail = [&](const char *format, ngx_str_t text) {
        auto *to = reinterpret_cast<u_char *>(why);
        why_end = ngx_slprintf(to, to + sizeof(why), format, &text);
    };

    if (reply->type == REDIS_REPLY_ERROR) {
        fail("%V", str(text_of(reply)));

    } else if (reply->type == REDIS_REPLY_NIL
               || (reply->type == REDIS_REPLY_ARRAY && reply->elements == 0))
    {
        fail("it knows no primary named \"%V\"", settings_.primary);

    } else if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2
               || reply->element[0]->type != REDIS_REPLY_STRING
               || reply->element[1]->type != REDIS_REPLY_STRING)
    {
        fail("its answer is not that of a Sentinel%V", ngx_null_string);

    } else {
        std::string_view name = text_of(reply->element[0]);
        std::string_view number = text_of(reply->element[1]);
        ngx_int_t port = ngx_atoi(str(number).data, number.size());

        if (name.empty() || name.size() > kMaxHostName) {
            fail("it names \"%V\", which is neither an address nor a name",
                 str(name));

        } else if (port < 1 || port > 65535) {
            fail("it names port \"%V\", must be from 1 to 65535", str(number));

        } else {
            named_host_[name.copy(named_host_, kMaxHostName)] = '\0';
            named_ = {str({named_host_, name.size()}),
                      static_cast<in_port_t>(port)};
        }
    }

    Trouble trouble = trouble_of(reply);

    drop_context();

    if (why_end != nullptr) {
        try_another(trouble,
                    {why, static_cast<size_t>(reinterpret_cast<char *>(why_end)
                                              - why)});
        return;
    }

    has_answered_ = true;
    lookup_.start(named_, *this);
}

void SentinelLocator::found(const RedisEndpoint &primary) noexcept
{
    bool is_by_name = view(primary.host) != view(named_.host);
    LocatorUser *user = user_;

    user_ = nullptr;
    first_ = current_;

    if (user != nullptr) {
        user->located({primary.host, primary.port,
                       is_by_name ? named_.host : ngx_str_t()});
    }
}

void SentinelLocator::drop_context() noexcept
{
    redisAsyncContext *ac = ac_;

    if (timer_.timer_set) {
        ngx_del_timer(&timer_);
    }

    if (ac != nullptr) {
        ac_ = nullptr;
        ac->data = nullptr;
        redisAsyncFree(ac);
    }
}

/*
 * Its error is the one to tell of: those that follow are NOAUTH. A server that
 * does not know AUTH may repeat its arguments: not in the log.
 */
void SentinelLocator::on_auth(redisAsyncContext *ac, void *data,
                              void *) noexcept
{
    auto *locator = static_cast<SentinelLocator *>(ac->data);
    auto *reply = static_cast<redisReply *>(data);

    if (locator != nullptr && reply != nullptr
        && reply->type == REDIS_REPLY_ERROR) {
        std::string_view text = text_of(reply);

        locator->drop_context();
        locator->try_another(Trouble::kForbidden,
                             text.substr(0, text.find(", with args")));
    }
}

void SentinelLocator::on_answer(redisAsyncContext *ac, void *data,
                                void *) noexcept
{
    auto *locator = static_cast<SentinelLocator *>(ac->data);

    if (locator == nullptr) {
        return;
    }

    if (data != nullptr) {
        locator->answered(static_cast<redisReply *>(data));
        return;
    }

    /* hiredis frees it right after this */
    locator->ac_ = nullptr;
    ac->data = nullptr;
    locator->drop_context();
    locator->try_another(Trouble::kUnreachable, reason_of(ac, false));
}

void SentinelLocator::on_shutdown(redisAsyncContext *ac) noexcept
{
    auto *locator = static_cast<SentinelLocator *>(ac->data);

    if (locator != nullptr) {
        locator->cancel();
    } else {
        redisAsyncFree(ac);
    }
}

void SentinelLocator::on_timer(ngx_event_t *ev) noexcept
{
    auto *locator = static_cast<SentinelLocator *>(ev->data);

    /* the answer may be there, if the worker had no time to read it */
    if (locator->ac_ != nullptr) {
        read_waiting_input(locator->ac_);
    }

    /* done, or the next one is being asked */
    if (locator->ac_ == nullptr || locator->timer_.timer_set) {
        return;
    }

    std::string_view reason = reason_of_silence(locator->ac_);

    locator->drop_context();
    locator->try_another(Trouble::kUnreachable, reason);
}

}  // namespace sl
