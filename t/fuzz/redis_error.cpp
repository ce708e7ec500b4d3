/* Errors that Redis replies with, and redirections among them. */

#include "redis/pure/sl_redis_error.h"

#include "fuzz.h"
#include "redis/pure/sl_cluster_map.h"
#include "redis/pure/sl_cluster_slot.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    using sl::RedisError;

    std::string error = Input(data, size).rest();
    RedisError kind = sl::classify_redis_error(error);
    sl::Redirection redirection;

    /* only the first word counts */
    check(kind == sl::classify_redis_error(error + " or so"));
    check(sl::classify_redis_error(" " + error) == RedisError::kThisCall);

    if (!sl::parse_redirection(error, &redirection)) {
        return 0;
    }

    check(kind == RedisError::kElsewhere);
    check(redirection.slot < sl::kClusterSlots);
    check(redirection.to.port != 0);

    /* said again in the shortest way, it says the same */
    std::string host(redirection.to.host);
    std::string again = (redirection.is_ask ? "ASK " : "MOVED ")
                        + std::to_string(redirection.slot) + " " + host + ":"
                        + std::to_string(redirection.to.port);
    sl::Redirection second;

    check(sl::parse_redirection(again, &second));
    check(second.is_ask == redirection.is_ask);
    check(second.slot == redirection.slot);
    check(second.to.host == host);
    check(second.to.port == redirection.to.port);

    /* and the host stands where it should */
    check(host.empty() || error.find(" " + host + ":") != std::string::npos);

    return 0;
}
