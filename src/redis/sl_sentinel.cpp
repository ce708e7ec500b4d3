#include "redis/sl_sentinel.h"

#include "redis/pure/sl_redis_error.h"
#include "redis/sl_redis_adapter.h"
#include "redis/sl_redis_login.h"

namespace sl {

namespace {

/* Whether only a person can mend what a Sentinel says. */
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
      named_host_(), user_(nullptr), ac_(nullptr),
      timer_(Wakeup::calling<&SentinelLocator::timed_out>(this,
                                                          Wakeup::kCancelable)),
      first_(first), current_(0), failed_(0)
{}

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

/* Another one is chosen once, however many connections find out. */
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
    try_another(trouble, has_answered_ ? "it names %V" : "%V", reason);
}

void SentinelLocator::located(const RedisEndpoint &where) noexcept
{
    has_answered_ ? found(where) : ask(where);
}

void SentinelLocator::ask(const RedisEndpoint &sentinel) noexcept
{
    OpenedContext opened = open_context(sentinel, settings_.tls, on_shutdown);

    if (opened.ac == nullptr) {
        try_another(opened.trouble, "%V", opened.reason);
        return;
    }

    ac_ = opened.ac;
    ac_->data = this;
    timer_.after(settings_.connect_timeout);

    if (!send_login(ac_, settings_.sentinel_login, on_auth, nullptr)
        || !send_words(
            ac_, on_answer, nullptr,
            {"SENTINEL", "get-master-addr-by-name", view(settings_.primary)}))
    {
        drop_context();
        try_another(Trouble::kLocal, "%V", "out of memory");
    }
}

void SentinelLocator::try_another(Trouble trouble, const char *format,
                                  std::string_view text) noexcept
{
    char masked[512];
    u_char reason[2 * sizeof(masked)];
    const RedisEndpoint &sentinel = settings_.endpoints[current_];
    ngx_str_t host = sentinel.host;
    ngx_str_t shown =
        str({masked, mask_passwords(text, settings_, masked, sizeof(masked))});

    u_char *end = reason + sizeof(reason);
    u_char *at = ngx_slprintf(reason, end, "Sentinel %V:%d: ", &host,
                              static_cast<int>(sentinel.port));

    at = ngx_slprintf(at, end, format, &shown);
    current_ = (current_ + 1) % settings_.endpoint_count;

    if (++failed_ < settings_.endpoint_count) {
        ask_next();
        return;
    }

    LocatorUser *user = user_;

    user_ = nullptr;

    if (user != nullptr) {
        user->not_located(trouble, view(reason, at));
    }
}

/* The context goes in any case; the reply stays until its callback returns. */
void SentinelLocator::answered(const redisReply *reply) noexcept
{
    drop_context();

    if (reply->type == REDIS_REPLY_ERROR) {
        try_another(trouble_of(reply), "%V", text_of(reply));

    } else if (reply->type == REDIS_REPLY_NIL
               || (reply->type == REDIS_REPLY_ARRAY && reply->elements == 0))
    {
        try_another(Trouble::kUnreachable, "it knows no primary named \"%V\"",
                    view(settings_.primary));

    } else if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2
               || reply->element[0]->type != REDIS_REPLY_STRING
               || reply->element[1]->type != REDIS_REPLY_STRING)
    {
        try_another(Trouble::kUnreachable,
                    "its answer is not that of a Sentinel%V", "");

    } else if (read_address(text_of(reply->element[0]),
                            text_of(reply->element[1]))) {
        has_answered_ = true;
        lookup_.start(named_, *this);
    }
}

/* False: it is none, and another Sentinel is being asked. */
bool SentinelLocator::read_address(std::string_view host,
                                   std::string_view number) noexcept
{
    ngx_int_t port = ngx_atoi(str(number).data, number.size());

    if (host.empty() || host.size() > kMaxHostName) {
        try_another(Trouble::kUnreachable,
                    "it names \"%V\", which is neither an address nor a name",
                    host);
        return false;
    }

    if (port < 1 || port > 65535) {
        try_another(Trouble::kUnreachable,
                    "it names port \"%V\", must be from 1 to 65535", number);
        return false;
    }

    named_host_[host.copy(named_host_, kMaxHostName)] = '\0';
    named_ = {str({named_host_, host.size()}), static_cast<in_port_t>(port)};

    return true;
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

    timer_.cancel();

    if (ac != nullptr) {
        ac_ = nullptr;
        ac->data = nullptr;
        redisAsyncFree(ac);
    }
}

/* Of the errors that come the first one is told: those that follow are NOAUTH.
 */
void SentinelLocator::on_auth(redisAsyncContext *ac, void *data,
                              void *) noexcept
{
    auto *locator = static_cast<SentinelLocator *>(ac->data);
    auto *reply = static_cast<redisReply *>(data);

    if (locator != nullptr && reply != nullptr
        && reply->type == REDIS_REPLY_ERROR) {
        locator->drop_context();
        locator->try_another(Trouble::kForbidden, "%V",
                             refusal_of_login(reply));
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
    locator->try_another(Trouble::kUnreachable, "%V", reason_of(ac, false));
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

void SentinelLocator::timed_out() noexcept
{
    /* the answer may be there, if the worker had no time to read it */
    if (ac_ != nullptr) {
        read_waiting_input(ac_);
    }

    /* it was, or the next Sentinel is being asked */
    if (ac_ == nullptr || timer_.is_set()) {
        return;
    }

    std::string_view reason = reason_of_silence(ac_);

    drop_context();
    try_another(Trouble::kUnreachable, "%V", reason);
}

}  // namespace sl
