/* Where a Redis is and how to log in, as the configuration says it. */

#pragma once

#include "redis/sl_redis_password.h"

namespace sl {

/* Where a server listens. Strings are NUL-terminated, for hiredis. */
struct RedisEndpoint {
    /* An address in numbers, or a name to look up if there is a resolver, or
     * the path of a unix socket. */
    ngx_str_t host;

    /* 0: the host is a unix socket's path. */
    in_port_t port;

    /* The name by which Sentinels know it, if its address was looked up; empty:
     * they say the address itself. */
    ngx_str_t name = ngx_null_string;
};

/* No name in DNS is longer. */
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
    kUnreachable, /* nobody is there, or nothing but silence or nonsense */
    kUnavailable, /* the server says that it cannot serve now */
    kForbidden,   /* the server says that we may not */
    kElsewhere,   /* the server says that another one has the keys */
    kNoScripting, /* the server cannot run scripts */
};

struct RedisLogin {
    /* Empty: the default user. */
    ngx_str_t user;

    /* nullptr: no login is needed. What it points to is each worker's own, and
     * may change. */
    RedisPassword *password;
};

/* What is needed to speak TLS; see sl_redis_tls.h. */
struct RedisTls;

struct RedisSettings {
    /* For log messages: the address without password. */
    ngx_str_t name;

    Topology topology;

    /*
     * Addresses to try in turn: those of the Redis, or of its Sentinels, or of
     * some servers of its cluster.
     */
    const RedisEndpoint *endpoints;
    ngx_uint_t endpoint_count;

    /* Looks names up; nullptr: only addresses in numbers can be used. */
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

    /* How long a check may take, from asking to answer. */
    ngx_msec_t timeout;

    /* How long a connection may take, from connect() to the end of set-up. */
    ngx_msec_t connect_timeout;

    /* How many connections a worker has to each server. */
    ngx_uint_t connections;
};

}  // namespace sl
