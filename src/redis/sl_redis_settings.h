/* Where a Redis is and how to log in, as the configuration says it. */

#pragma once

#include "base/sl_nginx.h"

namespace sl {

/* Where a server listens. Strings are NUL-terminated, for hiredis. */
struct RedisEndpoint {
    /* An address in numbers, or a name to look up if there is a resolver. Of
     * a unix socket the path. */
    ngx_str_t host;

    /* 0: it is a socket. */
    in_port_t port;

    /* What Sentinels call it if that was looked up; empty: they name it by its
     * address. */
    ngx_str_t name = ngx_null_string;
};

/* The longest that DNS has. */
constexpr size_t kMaxHostName = 255;

enum class Topology {
    kSingle,
    kSentinel, /* Sentinels know where the primary is */
    kCluster,  /* several primaries, each with its part of the keys */
};

/* Why a connection is of no use. */
enum class Trouble {
    kNone,
    kLocal,       /* this worker has no means to connect */
    kUnreachable, /* nobody there, or silence, or nonsense */
    kUnavailable, /* it says that it cannot serve now */
    kForbidden,   /* it says that we may not */
    kElsewhere,   /* it says that another server has the keys */
};

struct RedisLogin {
    /* Empty: none. */
    ngx_str_t user;
    ngx_str_t password;
};

/* How to speak TLS; see sl_redis_tls.h. */
struct RedisTls;

struct RedisSettings {
    /* For log messages: the address without password. */
    ngx_str_t name;

    Topology topology;

    /*
     * Addresses to try in turn: of the Redis; of its Sentinels; of some
     * servers of its cluster.
     */
    const RedisEndpoint *endpoints;
    ngx_uint_t endpoint_count;

    /* For names; nullptr: none, and there are only numbers. */
    ngx_resolver_t *resolver;

    /* nullptr: without TLS. */
    const RedisTls *tls;

    RedisLogin login;

    /* What Sentinels call the primary, and how to log in to them. */
    ngx_str_t primary;
    RedisLogin sentinel_login;

    ngx_uint_t db;

    /* What the names of all keys begin with. */
    ngx_str_t prefix;

    /* From asking to answer, for one check. */
    ngx_msec_t timeout;

    /* From connect() to the end of set-up. */
    ngx_msec_t connect_timeout;

    /* Per worker and server. */
    ngx_uint_t connections;
};

}  // namespace sl
