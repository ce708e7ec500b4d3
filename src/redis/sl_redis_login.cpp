#include "redis/sl_redis_login.h"

#include "base/pure/sl_escape.h"

namespace sl {

namespace {

template <typename Function>
void for_each_password(const RedisSettings &settings, Function function)
{
    for (RedisPassword *password :
         {settings.login.password, settings.sentinel_login.password})
    {
        if (password != nullptr) {
            function(*password);
        }
    }
}

}  // namespace

bool send_login(redisAsyncContext *ac, const RedisLogin &login,
                redisCallbackFn *on_reply, void *data) noexcept
{
    if (login.password == nullptr) {
        return true;
    }

    std::string_view user = view(login.user);
    std::string_view password = login.password->text();

    return user.empty()
               ? send_words(ac, on_reply, data, {"AUTH", password})
               : send_words(ac, on_reply, data, {"AUTH", user, password});
}

void refresh_passwords(const RedisSettings &settings) noexcept
{
    for_each_password(settings, [](RedisPassword &p) { p.refresh(); });
}

bool has_password_file(const RedisSettings &settings) noexcept
{
    bool has_file = false;

    for_each_password(settings, [&](const RedisPassword &p) {
        has_file |= p.file().len > 0;
    });

    return has_file;
}

unsigned password_changes(const RedisSettings &settings) noexcept
{
    unsigned changes = 0;

    for_each_password(settings,
                      [&](const RedisPassword &p) { changes += p.changes(); });

    return changes;
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
    std::string_view secrets[4];
    size_t count = 0;

    for_each_password(settings, [&](const RedisPassword &p) {
        secrets[count++] = p.text();
        secrets[count++] = p.previous();
    });

    return mask_secrets(text, {secrets[0], secrets[1], secrets[2], secrets[3]},
                        to, room);
}

}  // namespace sl
