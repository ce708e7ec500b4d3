"""How much memory Redis needs for a client, by how many of its requests are counted: the script
is called as the module calls it, for clients with addresses as keys."""

from slowest import Script, WINDOW, limit

# entries in all, with each number of requests per client
ENTRIES = 200_000
CLIENTS_AT_MOST = 20_000


def keys(count):
    return [f"rate_limit:api:198.51.{n // 250}.{n % 250}" for n in range(count)]


def request_id(number):
    return f"0190a5e0-0000-7000-8000-{number:012d}"


def bytes_per_client(redis, script, clients, calls):
    """calls: the arguments of each client's calls."""
    script.call("FLUSHALL", "SYNC")
    before = redis.used_memory()
    for key in keys(clients):
        for args in calls:
            script.connection.send("EVALSHA", script.digest, 1, key, *args)
        for _ in calls:
            script.connection.read()
    return (redis.used_memory() - before) / clients


def counted(requests):
    return [["/1", WINDOW, requests, request_id(n)] for n in range(requests)]


def measure(redis):
    script = Script(redis)
    results = {}
    for requests in 1, 10, 100, 128, 200, 1000, 10_000:
        clients = min(CLIENTS_AT_MOST, ENTRIES // requests)
        results[str(requests)] = bytes_per_client(redis, script, clients, counted(requests))

    for buckets in 6, 24:
        results[f"{buckets} buckets"] = bytes_of_buckets(redis, script, buckets)
    return results


def bytes_of_buckets(redis, script, buckets):
    """All but the last bucket are put there, as nobody waits for a window to pass."""
    script.call("FLUSHALL", "SYNC")
    width = WINDOW // buckets
    now = redis_now(script)
    clients = keys(CLIENTS_AT_MOST)
    before = redis.used_memory()
    for key in clients:
        old = [word for n in range(1, buckets) for word in (20, (now // width + 1 - n) * width)]
        script.call("ZADD", key, *old)
        script.call("EVALSHA", script.digest, 1, key, "", request_id(1), *limit(10_000, buckets=buckets))
    return (redis.used_memory() - before) / len(clients)


def redis_now(script):
    seconds, microseconds = script.call("TIME")
    return int(seconds) * 1_000_000 + int(microseconds)
