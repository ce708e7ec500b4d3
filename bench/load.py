"""Load, and what a request cost the servers meanwhile."""

import json

from servers import BENCH, output_of


def wrk(nginx, path, seconds, connections=32, clients=10000, prefix="c", start=0):
    """As fast as it goes. One thread: nginx and Redis need the other core."""
    output = output_of("wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", BENCH / "clients.lua",
                       nginx.url(path), "--", prefix, str(clients), str(start))
    return json.loads(output.splitlines()[-1])


def fill(nginx, path, requests, **load):
    """At least that many requests, spread evenly over the clients. How many they were."""
    done = 0
    while done < requests:
        result = wrk(nginx, path, 1, start=done, **load)
        check_answers(path, result, refuses=False)
        done += result["requests"]
    return done


def measure(nginx, redis, path, seconds, refuses=False, **load):
    """What a request costs, in µs of CPU and in calls to Redis, and how it feels."""
    nginx_us, redis_us, calls = nginx.cpu_us(), redis.cpu_us(), redis.calls()
    result = wrk(nginx, path, seconds, **load)
    nginx_us, redis_us = nginx.cpu_us() - nginx_us, redis.cpu_us() - redis_us
    made = {name: count - calls.get(name, 0) for name, count in redis.calls().items()}
    made.pop("info", None)  # that was us

    check_answers(path, result, refuses)
    n = result["requests"]
    return {
        "requests_per_second": n / result["seconds"],
        "p50_us": result["p50_us"],
        "p99_us": result["p99_us"],
        "nginx_us": nginx_us / n,
        "redis_us": redis_us / n,
        "redis_evalsha": made.get("evalsha", 0) / n,
        "redis_commands": sum(made.values()) / n,
    }


def check_answers(path, result, refuses):
    """Something that is fast because it fails must not go unnoticed."""
    n = result["requests"]
    wrong = n - result["not_2xx"] if refuses else result["not_2xx"]
    if wrong > n / 100 or result["broken"] > n / 100:
        raise SystemExit(f"bench: {path}: of {n} requests {wrong} were answered otherwise than "
                         f"they should, and {result['broken']} not at all")


def paced(program, nginx, path, rate, seconds):
    """Latencies in µs, in order, at a fixed rate: see paced.cpp."""
    output = output_of(program, str(nginx.port), f"{path}?client=p", str(rate), str(seconds))
    return sorted(int(line) for line in output.split())
