"""What is measured, one step after the other, each with a Redis of its own."""

import dataclasses
import json
import os
import pathlib
import statistics
import typing

import callgrind
import exactness
import redis_memory
import scripts
import slowest
from load import fill, measure, paced, wrk
from servers import BENCH, Nginx, Redis, output_of
from variants import ALGORITHMS, LEAVING, LEAVING_WINDOW, VARIANTS

QUICK = os.environ.get("QUICK", "") not in ("", "0")
ROUNDS = int(os.environ.get("ROUNDS") or (2 if QUICK else 10))
SECONDS = int(os.environ.get("SECONDS") or 1)

# for how cost grows there are many points to measure
POINT_ROUNDS = min(ROUNDS, 1 if QUICK else 3)
POINT_SECONDS = 1


@dataclasses.dataclass
class Bench:
    module: pathlib.Path
    build: pathlib.Path
    redis: Redis
    note: typing.Callable

    def nginx(self, **options):
        return Nginx(self.module, self.redis, **options)

    def peer(self, **options):
        """nginx-Lua, which serves the paths that begin so."""
        return self.nginx(config="peer/nginx.conf", **options)

    def program(self, name, *options):
        """A C++ program from this directory, compiled."""
        path = self.build / name
        output_of("g++", "-std=c++17", "-O2", "-o", path, BENCH / f"{name}.cpp", *options)
        return path


def is_peer(path):
    return path.startswith("/lua")


def in_turns(points):
    """points: by name, functions that measure. Their medians."""
    rounds = {name: [] for name in points}
    for _ in range(POINT_ROUNDS):
        for name, measured in points.items():
            rounds[name].append(measured())
    return {name: {key: statistics.median(r[key] for r in results) for key in results[0]}
            for name, results in rounds.items()}


def compare_variants(bench):
    """Every variant once per round."""
    results = {variant.name: [] for variant in VARIANTS}

    with (bench.nginx() as one, bench.nginx(workers=2) as two,
          bench.peer() as lua_one, bench.peer(workers=2) as lua_two):
        servers = {("nginx", 1): one, ("nginx", 2): two, ("lua", 1): lua_one, ("lua", 2): lua_two}

        def nginx_of(variant):
            return servers["lua" if is_peer(variant.path) else "nginx", variant.workers]

        # counts every client once, so that what refuses does from then on
        bench.note("alternatives, warming up")
        for variant in VARIANTS:
            wrk(nginx_of(variant), variant.path, 1, clients=variant.clients)

        for n in range(ROUNDS):
            bench.note(f"alternatives, round {n + 1} of {ROUNDS}")
            for variant in VARIANTS:
                results[variant.name].append(
                    measure(nginx_of(variant), bench.redis, variant.path, SECONDS, variant.refuses,
                            clients=variant.clients))

    return results


def added_latency(bench):
    """At half of what the module reaches with Redis, and what a bare call to Redis takes."""
    program = bench.program("paced")
    rounds = []

    with bench.nginx() as nginx:
        call = scripts.module_call(nginx, bench.redis)
        saturation = statistics.median(
            measure(nginx, bench.redis, "/redis", 1)["requests_per_second"] for _ in range(5))
        rate = round(saturation / 2)
        bench.note(f"latency at {rate:,} requests per second")
        for _ in range(ROUNDS):
            bench.redis.flush()
            result = {f"round_trip_{name}": value
                      for name, value in scripts.round_trip(bench.redis, call, 10000).items()}
            for path in "/no_limit", "/redis":
                latencies = paced(program, nginx, path, rate, SECONDS)
                for percent in 50, 99:
                    result[f"{path[1:]}_p{percent}_us"] = latencies[len(latencies) * percent // 100]
            rounds.append(result)

    return {"rate": rate, "rounds": rounds}


def script_cost(bench):
    """Ours and the one that others begin with, pipelined."""
    bench.note("scripts, pipelined")
    with bench.nginx() as nginx:
        calls = scripts.all_calls(nginx, bench.redis)

    return [{name: scripts.pipelined(bench.redis, call, per_call, 50_000)
             for name, (call, per_call) in calls.items()}
            for _ in range(ROUNDS)]


def compare_algorithms(bench):
    """Every load once per round, each time with as many requests per client to begin with."""
    results = {name: [] for name in ALGORITHMS}

    with bench.nginx() as nginx:
        calls = {load.path: scripts.module_call(nginx, bench.redis, load.path) for load in ALGORITHMS.values()}
        for n in range(ROUNDS):
            bench.note(f"algorithms, round {n + 1} of {ROUNDS}")
            for name, load in ALGORITHMS.items():
                clients = [f"c{i}" for i in range(load.clients)]    # as wrk calls them
                scripts.fill(bench.redis, calls[load.path], clients, load.requests, per_call=16)
                results[name].append(measure(nginx, bench.redis, load.path, SECONDS, clients=load.clients,
                                             connections=load.connections))

    return results


def compare_leaving(bench):
    """Logs from which requests leave as others come. All take turns from the beginning, until what
    is in their windows is what these turns have left there."""
    results = {name: [] for name in LEAVING}

    with bench.nginx() as nginx:
        for n in range(LEAVING_WINDOW // len(LEAVING) + 1 + ROUNDS):
            bench.note(f"requests leave, turn {n + 1}")
            for name, load in LEAVING.items():
                result = measure(nginx, bench.redis, load.path, 1, clients=load.clients,
                                 connections=load.connections)
                if n > LEAVING_WINDOW // len(LEAVING):
                    results[name].append(result)

    return results


def slowest_calls(bench):
    """Of the script, in µs, by what it has to do, in rounds."""
    bench.note(f"the longest calls of the script, up to {slowest.ENTRIES:,} entries")
    return slowest.measure(bench.redis, rounds=1 if QUICK else 2, tries=4)


def grow_entries(bench):
    """With what is in the window already. As many entries in all each time.

    That number is reached in the middle of the measurement, which adds some itself.
    """
    entries = 40_000 if QUICK else 120_000
    results = {}

    with bench.nginx() as nginx:
        for path in "/redis", "/memory":
            points, memory = {}, {}
            for size in 10, 100, 1000, 10000:
                bench.note(f"{path[1:]}: {size:,} entries in the window")
                load = {"clients": entries // size, "prefix": f"e{size}-"}
                before = bench.redis.used_memory()
                counted = fill(nginx, path, entries * 0.7, **load)
                memory[counted * size // entries] = (bench.redis.used_memory() - before) / counted
                points[size] = lambda path=path, load=load: measure(
                    nginx, bench.redis, path, POINT_SECONDS, **load)
            results[path] = in_turns(points)
            if path == "/redis":
                results["redis_bytes_per_entry"] = memory

    return results


def grow_clients(bench):
    """With how many clients there are; all have been seen before."""
    results = {}

    with bench.nginx() as nginx:
        for path in "/redis", "/memory", "/limit_req":
            points = {}
            for clients in 1, 100, 10_000, 100_000 if QUICK else 1_000_000:
                bench.note(f"{path[1:]}: {clients:,} clients")
                load = {"clients": clients, "prefix": f"n{clients}-"}
                fill(nginx, path, clients, **load)
                points[clients] = lambda path=path, load=load: measure(
                    nginx, bench.redis, path, POINT_SECONDS, **load)
            results[path] = in_turns(points)

    return results


def grow_limits(bench):
    bench.note("1, 2 and 4 limits per request")
    with bench.nginx() as nginx:
        return {path: in_turns({
            limits: lambda suffix=suffix, path=path: measure(
                nginx, bench.redis, path + suffix, POINT_SECONDS)
            for limits, suffix in ((1, ""), (2, "_2_limits"), (4, "_4_limits"))})
            for path in ("/redis", "/memory")}


def grow_connections(bench):
    results = {}
    for path in "/no_limit", "/lua", "/redis":
        bench.note(f"{path[1:]}: 1, 8, 32 and 128 connections")
        with bench.peer() if is_peer(path) else bench.nginx() as nginx:
            wrk(nginx, path, 1)
            results[path] = in_turns({
                n: lambda n=n: measure(nginx, bench.redis, path, POINT_SECONDS, connections=n)
                for n in (1, 8, 32, 128)})
    return results


def count_instructions(bench):
    bench.note("instructions per request")
    requests = 500 if QUICK else 2000
    paths = ["/no_limit", "/limit_req", "/redis", "/packed", "/buckets", "/memory",
             "/limit_req_refusing", "/redis_refusing", "/memory_refusing"]
    return {"nginx": callgrind.of_nginx(bench.module, bench.redis, paths, requests),
            "redis": callgrind.of_redis(bench.module, requests)}


def compare_exactness(bench):
    """The most that each limiter lets through in a window, and what it refuses needlessly."""
    return exactness.measure(bench, *((50, 500) if QUICK else (100, 1000)))


def memory_of_redis(bench):
    """Bytes per client of Redis, by algorithm and number of requests."""
    bench.note("memory of Redis")
    return redis_memory.measure(bench.redis)


def table_memory(bench):
    """Bytes per client of the embedded store, by its number of requests."""
    bench.note("memory of the embedded store")
    src = BENCH.parent / "src"
    program = bench.program("table_memory", f"-I{src}", *src.glob("*/pure/*.cpp"))
    return json.loads(output_of(program))


def table_taking_back(bench):
    """Requests that the embedded store takes back per second, by how many are counted; in rounds."""
    bench.note("taking back in the embedded store")
    src = BENCH.parent / "src"
    program = bench.program("table_taking_back", f"-I{src}", *src.glob("*/pure/*.cpp"))
    return json.loads(output_of(program))


def usage_scan(bench):
    """GB per second in which a usage is looked for, and that memcpy() copies, by what passes; in rounds."""
    bench.note("looking for usage in what passes")
    src = BENCH.parent / "src"
    program = bench.program("usage_scan", f"-I{src}", *src.glob("usage/pure/*.cpp"), *src.glob("base/pure/*.cpp"))
    return json.loads(output_of(program))


STEPS = {
    "variants": compare_variants,
    "exactness": compare_exactness,
    "latency": added_latency,
    "scripts": script_cost,
    "algorithms": compare_algorithms,
    "leaving": compare_leaving,
    "slowest": slowest_calls,
    "instructions": count_instructions,
    "entries": grow_entries,
    "clients": grow_clients,
    "limits": grow_limits,
    "connections": grow_connections,
    "redis_memory": memory_of_redis,
    "table_memory": table_memory,
    "table_taking_back": table_taking_back,
    "usage_scan": usage_scan,
}
