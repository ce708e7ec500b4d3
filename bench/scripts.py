"""What the two Lua scripts cost Redis, without nginx: redis-benchmark calls them."""

import csv
import io
import re
import subprocess
import time
import urllib.request

from servers import BENCH, output_of

CLIENTS = 10000
# requests under way at a time, and of these in one call: with 32 connections it is six to eight
PIPELINED = 16
BATCH = 8
# redis-benchmark puts twelve digits in its place
RANDOM = "__rand_int__"
RANDOM_ID = f"01890a5d-ac96-774b-8cce-{RANDOM}"
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")


def common_call(redis):
    """The script that others begin with, called as peer/limiter.lua does."""
    digest = redis.call("SCRIPT", "LOAD", (BENCH / "peer" / "sliding_window.lua").read_text()).strip()
    return ["EVALSHA", digest, "1", f"rate_limit:lua:{RANDOM}", str(int(time.time() * 1000)),
            "3600000", "1000000", RANDOM_ID]


def module_call(nginx, redis):
    """What the module sends for one request, as Redis sees it, but for any client and id."""
    monitor = subprocess.Popen(["redis-cli", "-p", str(redis.port), "MONITOR"], text=True,
                               stdout=subprocess.PIPE)
    try:
        monitor.stdout.readline()
        urllib.request.urlopen(nginx.url("/redis?client=PROBE")).read()
        for line in monitor.stdout:
            words = re.findall(r'"((?:[^"\\]|\\.)*)"', line)
            if words and words[0].upper() == "EVALSHA":
                call = [UUID.sub(RANDOM_ID, word).replace("PROBE", RANDOM) for word in words]
                # the same id all the time would be counted only once
                if not any(RANDOM_ID in word for word in call):
                    raise SystemExit("bench: no id to vary in what the module sends: " + line)
                return call
    finally:
        monitor.terminate()
        monitor.wait()


def together(call, count):
    """As many requests in one call, as the module asks about those that come at a time."""
    name, digest, _, key, *limit, request_id = call
    return [name, digest, str(count), *[key] * count, *limit, *[request_id] * count]


def all_calls(nginx, redis):
    """By name: a call, and how many requests it is about."""
    module = module_call(nginx, redis)
    return {"common": (common_call(redis), 1), "module": (module, 1),
            "module_batch": (together(module, BATCH), BATCH)}


def benchmark(redis, call, requests, *options):
    output = output_of("redis-benchmark", "-p", str(redis.port), "-n", str(requests), "-r", str(CLIENTS),
                       "--csv", *options, *call)
    return next(csv.DictReader(io.StringIO(output)))


def pipelined(redis, call, per_call, requests):
    """µs of Redis's CPU per request, and bytes it needs for what was counted by one."""
    redis.flush()
    memory, cpu = redis.used_memory(), redis.cpu_us()
    benchmark(redis, call, requests // per_call, "-P", str(PIPELINED // per_call))
    return {"redis_us": (redis.cpu_us() - cpu) / requests,
            "bytes": (redis.used_memory() - memory) / requests}


def round_trip(redis, call, requests):
    """µs that one client waits for one call to an otherwise idle Redis."""
    row = benchmark(redis, call, requests, "-c", "1")
    return {"p50_us": float(row["p50_latency_ms"]) * 1000, "p99_us": float(row["p99_latency_ms"]) * 1000}
