"""What the module's Lua script and another cost Redis, without nginx: redis-benchmark calls them."""

import csv
import dataclasses
import io
import re
import subprocess
import time
import urllib.request

from calls import Connection, command, request_id
from servers import BENCH, output_of

CLIENTS = 10000
# what redis-benchmark calls them
NAMES = [f"{n:012d}" for n in range(CLIENTS)]
# of each that is no stranger any more
ENTRIES = 60
# requests under way at a time, and of these in one call: with 32 connections it is six to eight
PIPELINED = 16
BATCH = 8
# redis-benchmark puts twelve digits in its place
RANDOM = "__rand_int__"
RANDOM_ID = f"01890a5d-ac96-774b-8cce-{RANDOM}"
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
# By name, the path with which the module uses it.
ALGORITHMS = {"log": "/redis", "packed": "/packed", "buckets": "/buckets"}


@dataclasses.dataclass
class Call:
    """What is sent about a request, with RANDOM where the client's name stands."""
    digest: str
    keys: list
    limits: list
    has_ids: bool

    def words(self, ids=(RANDOM_ID,), client=RANDOM):
        """For as many requests at once, as the module asks about those that come at a time."""
        return ["EVALSHA", self.digest, str(len(self.keys) * len(ids)), *self.keys_of(client) * len(ids),
                *self.limits, *(ids if self.has_ids else ())]

    def keys_of(self, client):
        return [key.replace(RANDOM, client) for key in self.keys]


def common_call(redis):
    """The script that others begin with, called as peer/limiter.lua does."""
    digest = redis.call("SCRIPT", "LOAD", (BENCH / "peer" / "sliding_window.lua").read_text()).strip()
    return Call(digest, [f"rate_limit:lua:{RANDOM}"], [str(int(time.time() * 1000)), "3600000", "1000000"],
                has_ids=True)


def module_call(nginx, redis, path="/redis"):
    """What the module sends for one request, as Redis sees it, but for any client and id."""
    monitor = subprocess.Popen(["redis-cli", "-p", str(redis.port), "MONITOR"], text=True,
                               stdout=subprocess.PIPE)
    try:
        monitor.stdout.readline()
        urllib.request.urlopen(nginx.url(f"{path}?client=PROBE")).read()
        for line in monitor.stdout:
            words = re.findall(r'"((?:[^"\\]|\\.)*)"', line)
            if words and words[0].upper() == "EVALSHA":
                _, digest, keys, *words = [word.replace("PROBE", RANDOM) for word in words]
                # the same id all the time would be counted only once, where ids are kept
                keys, words = words[:int(keys)], words[int(keys):]
                has_ids = UUID.fullmatch(words[-1]) is not None
                return Call(digest, keys, words[:-1] if has_ids else words, has_ids)
    finally:
        monitor.terminate()
        monitor.wait()


def all_calls(nginx, redis):
    """By name: a call, and how many requests it is about."""
    calls = {"common": (common_call(redis), 1)}
    for name, path in ALGORITHMS.items():
        call = module_call(nginx, redis, path)
        calls |= {name: (call, 1), f"{name}_batch": (call, BATCH)}
    return calls


def fill(redis, call, clients, entries, per_call=1):
    """About so many entries for each of the clients, and nothing else: some have more and some less, so
    that they do not all outgrow their memory at the same time."""
    redis.flush()
    connection = Connection(redis)
    sizes = sorted({round(entries * (0.8 + 0.02 * n)) for n in range(21)})

    for size in sizes:
        ids = [request_id(n) for n in range(size)]
        connection.pipeline(command(*call.words(ids[first:first + per_call], f"of{size}"))
                            for first in range(0, size, per_call))
    connection.pipeline(command("COPY", *keys, "REPLACE")
                        for n, client in enumerate(clients)
                        for keys in zip(call.keys_of(f"of{sizes[n % len(sizes)]}"), call.keys_of(client)))


def benchmark(redis, call, requests, per_call, *options):
    output = output_of("redis-benchmark", "-p", str(redis.port), "-n", str(requests // per_call), "-r", str(CLIENTS),
                       "--csv", *options, *call.words([RANDOM_ID] * per_call))
    return next(csv.DictReader(io.StringIO(output)))


def pipelined(redis, call, per_call, requests):
    """µs of Redis's CPU per request, and bytes it needs for what was counted by one."""
    redis.flush()
    memory, cpu = redis.used_memory(), redis.cpu_us()
    benchmark(redis, call, requests, per_call, "-P", str(PIPELINED // per_call))
    return {"redis_us": (redis.cpu_us() - cpu) / requests,
            "bytes": (redis.used_memory() - memory) / requests}


def round_trip(redis, call, requests):
    """µs that one client waits for one call to an otherwise idle Redis."""
    row = benchmark(redis, call, requests, 1, "-c", "1")
    return {"p50_us": float(row["p50_latency_ms"]) * 1000, "p99_us": float(row["p99_latency_ms"]) * 1000}
