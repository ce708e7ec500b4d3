"""How much memory Redis needs for a client, by how many of its requests are counted: the script
is called as the module calls it, for clients with addresses as keys."""

import struct

from calls import WINDOW, Script, command

# as the script calls them
LOGS = {"log": "l", "packed": "p"}
BUCKETS = {"6 buckets": "b6", "24 buckets": "b24"}

REQUESTS = (1, 10, 100, 200, 1000, 10_000)

# entries in all, with each number of requests per client
ENTRIES = 200_000
CLIENTS_AT_MOST = 20_000


def keys(count, kind):
    """As the module names them."""
    buckets = kind[1:]
    form = "" if kind == "l" else f"!{buckets}x{WINDOW // 1000}" if buckets else "!p"
    return [f"rate_limit:api{form}:198.{51 + n // 62_500}.{n // 250 % 250}.{n % 250}" for n in range(count)]


def fill_buckets(script, clients, requests, kind):
    """All but the last bucket are put there, as nobody waits for a window to pass."""
    buckets, in_last = int(kind[1:]), min(2, requests)
    before = min(buckets - 1, requests - in_last)
    if before > 0:
        text = buckets_before(script, before, requests - in_last, WINDOW // buckets)
        script.pipeline(command("SET", key, text) for key in clients)
    script.count(clients, in_last, kind)


def buckets_before(script, count, requests, width):
    """What the script would have left in so many buckets before this one."""
    seconds, microseconds = script.call("TIME")
    now = int(seconds) * 1_000_000 + int(microseconds)
    ends = [(now // width + 1 - n) * width for n in range(count, 0, -1)]
    counts = [requests // count] * count
    older = b"".join(struct.pack(">QQ", *pair) for pair in zip(ends[:-1], counts))
    return struct.pack(">IQQQQQ", count - 1, ends[-1], ends[0], 0, sum(counts), counts[-1]) + older


def measure(redis):
    """Bytes per client, by algorithm and requests."""
    script = Script(redis)

    def used(fill, clients, requests, kind):
        script.call("FLUSHALL", "SYNC")
        before = redis.used_memory()
        fill(script, keys(clients, kind), requests, kind)
        return redis.used_memory() - before

    def per_client(fill, kind):
        numbers = {requests: min(CLIENTS_AT_MOST, ENTRIES // requests) for requests in REQUESTS}
        return {requests: used(fill, clients, requests, kind) / clients
                for requests, clients in numbers.items()}

    return {**{name: per_client(Script.count, word) for name, word in LOGS.items()},
            **{name: per_client(fill_buckets, word) for name, word in BUCKETS.items()}}
