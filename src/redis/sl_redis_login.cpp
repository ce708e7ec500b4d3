#include "redis/sl_redis_login.h"

#include "base/pure/sl_escape.h"

namespace sl {

bool send_login(redisAsyncContext *ac, const RedisLogin &login,
                redisCallbackFn *on_reply, void *data) noexcept
{
    std::string_view user = view(login.user);
    std::string_view password = view(login.password);

    if (password.empty()) {
        return true;
    }

    return user.empty()
               ? send_words(ac, on_reply, data, {"AUTH", password})
               : send_words(ac, on_reply, data, {"AUTH", user, password});
}

/* A server that does not know AUTH repeats its arguments: not in the log. */
std::string_view refusal_of_login(const redisReply *reply) noexcept
{
    std::string_view text = text_of(reply);

    return text.substr(0, text.find(", with args"));
}

size_t mask_passwords(std::string_view text, const RedisSettings &settings,
                      char *to, size_t room) noexcept
{
    return mask_secrets(
        text,
        {view(settings.login.password), view(settings.sentinel_login.password)},
        to, room);
}

}  // namespace sl
