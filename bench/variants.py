"""What is compared, and with what."""

import dataclasses


@dataclasses.dataclass
class Variant:
    name: str
    label: str
    path: str
    clients: int = 10000
    workers: int = 1
    refuses: bool = False
    # its like without a limit, with limit_req and with nginx-Lua
    peers: tuple = ("no_limit", "limit_req", "lua")


# Of so few clients each has several entries in a window of 200 ms, and some that have left it.
EXPIRING = {"clients": 1000, "peers": ("no_limit", "limit_req", "lua_sliding")}

# A flood comes from few.
REFUSED = {"clients": 100, "refuses": True, "peers": ("no_limit", "limit_req_refusing", "lua")}

TWO_WORKERS = {"workers": 2, "peers": ("no_limit_2", None, "lua_2")}

# What is close to each other here is so in time, too.
VARIANTS = [
    Variant("no_limit", "no limit", "/no_limit"),
    Variant("limit_req", "limit_req", "/limit_req"),
    Variant("memory", "this module, embedded", "/memory"),
    Variant("redis", "this module, Redis", "/redis"),
    Variant("lua", "nginx-Lua, Redis", "/lua"),
    Variant("lua_sliding", "nginx-Lua, entries expire", "/lua_sliding", **EXPIRING),
    Variant("redis_sliding", "this, Redis, entries expire", "/redis_sliding", **EXPIRING),
    Variant("memory_sliding", "this, embedded, entries expire", "/memory_sliding", **EXPIRING),
    Variant("limit_req_refusing", "limit_req, refusing", "/limit_req_refusing", **REFUSED),
    Variant("redis_refusing", "this, Redis, refusing", "/redis_refusing", **REFUSED),
    Variant("redis_many_refused", "  10,000 clients", "/redis_refusing", **{**REFUSED, "clients": 10000}),
    Variant("redis_uncached", "  without deny cache", "/redis_refusing_uncached", **REFUSED),
    Variant("memory_refusing", "this, embedded, refusing", "/memory_refusing", **REFUSED),
    Variant("no_limit_2", "no limit, 2 workers", "/no_limit", **TWO_WORKERS),
    Variant("lua_2", "nginx-Lua, 2 workers", "/lua", **TWO_WORKERS),
    Variant("redis_2", "this, Redis, 2 workers", "/redis", **TWO_WORKERS),
]


@dataclasses.dataclass
class Load:
    label: str
    path: str
    clients: int = 2000
    # of each client, before it begins
    requests: int = 60
    connections: int = 64


ALGORITHMS = {
    "log": Load("log", "/redis"),
    "packed": Load("packed", "/packed"),
    "buckets": Load("buckets", "/buckets"),
    "log_5": Load("log, cost 5", "/redis_cost_5"),
    "packed_5": Load("packed, cost 5", "/packed_cost_5"),
    "buckets_5": Load("buckets, cost 5", "/buckets_cost_5"),
    "log_2": Load("log, two limits", "/redis_2_limits"),
    "packed_2": Load("packed, two limits", "/packed_2_limits"),
    "packed_few": Load("packed, 10 requests", "/packed", clients=1000, requests=10),
    # its max is 10,000, and some clients begin with a fifth more
    "packed_many": Load("packed, 8,000 requests", "/packed", clients=1000, requests=8_000),
}

# By name, where requests leave a window of so many seconds as others come.
LEAVING = {"log": Load("log", "/log_leaving"), "packed": Load("packed", "/packed_leaving"),
           "buckets": Load("buckets", "/buckets_leaving")}
LEAVING_WINDOW = 30
