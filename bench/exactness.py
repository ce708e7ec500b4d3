"""How exact limiters are: the most requests that each lets through in any true window, and how
many it refuses although there is room, since one that refuses everything never lets too many pass.

When a limiter decided about a request is not known to the microsecond: it was after the request
was sent and before the answer was there. So there are two bounds. What was both sent and answered
within one window certainly passed in it: that many at least. What may have been decided in one
window, because it was under way at some moment of it, is what passed in it at most. The module is
judged by the first, as the others are: more than the limit there would be a proof that it fails.

A refused request certainly had room if fewer than the limit may have passed in the window before
it, wherever between sending and answer that window ends.

All of it is measured by the clock of the day, which Redis goes by, too.
"""

import bisect
import dataclasses
import subprocess
import time

CONFIG = "exactness.conf"
WORKERS = 2
WARM_UP = "warm_up"


@dataclasses.dataclass
class Limiter:
    path: str
    label: str
    is_ours: bool = False
    # it promises to refuse only where there is no room
    is_never_early: bool = False


LIMITERS = [
    Limiter("limit_req", "limit_req, no burst"),
    Limiter("limit_req_burst", "limit_req, burst"),
    Limiter("fixed_window", "fixed window"),
    Limiter("two_windows", "two-window approximation"),
    Limiter("gcra", "GCRA, burst"),
    Limiter("redis_log", "this module, Redis, log", True, True),
    Limiter("redis_buckets", "this module, Redis, buckets", True),
    Limiter("memory_log", "this module, embedded, log", True, True),
    Limiter("memory_buckets", "this module, embedded, buckets", True),
]


def evenly(first, last, per_window):
    count = round((last - first) * per_window)
    return [first + n * (last - first) / count for n in range(count)]


def burst(at, size):
    return [at] * size


def loads(limit):
    """By kind and name: when requests come, in windows; windows that lie at the multiples of their
    length begin at the whole numbers. Each load has a client of its own. They run at the same
    time, but their bursts do not: these would be in each other's way."""
    twice = 2 * limit

    return {
        # always, what the limit allows or more
        "steady": {
            "below": evenly(0, 6, 0.9 * limit),
            "above": evenly(0, 6, 1.5 * limit),
        },
        "bursty": {
            "bursts": [moment for n in range(8) for moment in burst(0.35 + 0.7 * n, twice)],
        },
        "adversarial": {
            # the worst for windows that lie fixed
            "boundary": burst(1.97, twice) + burst(2.03, twice),
            # the worst for what forgets a burst at the rate of the limit (GCRA, limit_req), and for
            # what takes it to have come evenly and earlier (two windows)
            "burst_then_even": burst(2.94, twice) + evenly(2.95, 3.94, 1.5 * limit),
            # the worst for what forgets too early
            "one_window_later": burst(4.94, twice) + evenly(5.91, 5.97, 4 * limit / 0.06),
        },
    }


@dataclasses.dataclass
class Request:
    sent: int
    answered: int
    is_passed: bool


def most_certain(passed, window):
    """That were sent and answered within one window, which may begin with any of them."""
    passed = sorted(passed, key=lambda r: r.sent)
    sent = [r.sent for r in passed]

    def from_first(n):
        end = passed[n].sent + window
        return sum(r.answered < end for r in passed[n:bisect.bisect_left(sent, end)])

    return max(map(from_first, range(len(passed))), default=0)


def most_possible(passed, window):
    """That may have been decided within one window, which begins as late as one of them allows."""
    return max((sum(r.answered >= first.answered and r.sent < first.answered + window for r in passed)
                for first in passed), default=0)


def refused_with_room(requests, limit, window):
    """Those with fewer than the limit before them that may still have been in the window."""
    passed = [r for r in requests if r.is_passed]

    def has_room(refused):
        return sum(r.sent <= refused.answered and r.answered > refused.sent - window
                   for r in passed) < limit

    return sum(has_room(r) for r in requests if not r.is_passed)


def judge(requests, limit, window):
    passed = [r for r in requests if r.is_passed]
    return {"sent": len(requests), "passed": len(passed),
            "most_certain": most_certain(passed, window) / limit,
            "most_possible": most_possible(passed, window) / limit,
            "refused_with_room": refused_with_room(requests, limit, window)}


def replay(program, nginx, limiter, by_client, window):
    """by_client: moments in windows. The requests, by client."""
    begin = (time.time_ns() // 1000 // window + 2) * window
    # workers connect to Redis with their first request
    schedule = [(begin - window // 2, WARM_UP)] * 32
    schedule += [(begin + round(moment * window), client)
                 for client, moments in by_client.items() for moment in moments]

    done = subprocess.run(
        [program, str(nginx.port)], capture_output=True, text=True,
        input="".join(f"{at} /{limiter.path}?client={client}\n" for at, client in sorted(schedule)))
    if done.returncode != 0:
        raise SystemExit(f"bench: {limiter.label}: {done.stderr}")

    requests = {client: [] for client in (WARM_UP, *by_client)}
    for line in done.stdout.splitlines():
        sent, answered, status, path = line.split()
        if status not in ("200", "429"):
            raise SystemExit(f"bench: {limiter.label} answers with {status}")
        requests[path.partition("=")[2]].append(Request(int(sent), int(answered), status == "200"))
    return requests


def measure(bench, limit, window_ms):
    program = bench.program("replay")
    by_kind = loads(limit)
    by_client = {name: moments for kind in by_kind.values() for name, moments in kind.items()}
    limiters = {}

    with bench.nginx(config=CONFIG, workers=WORKERS,
                     values={"MAX": limit, "BURST": limit - 1, "WINDOW_MS": window_ms,
                             "PER_SECOND": limit * 1000 // window_ms}) as nginx:
        for limiter in LIMITERS:
            bench.note(f"exactness: {limiter.label}")
            requests = replay(program, nginx, limiter, by_client, window_ms * 1000)
            limiters[limiter.path] = {
                kind: {name: judge(requests[name], limit, window_ms * 1000) for name in names}
                for kind, names in by_kind.items()}

    return {"max": limit, "window_ms": window_ms, "limiters": limiters}


def worst(loads_of_kind):
    """The load of a kind that shows the most."""
    return max(loads_of_kind.values(), key=lambda load: (load["most_certain"], load["most_possible"]))


def share_refused_with_room(loads_of_kind):
    """Of all that were sent."""
    return (sum(load["refused_with_room"] for load in loads_of_kind.values())
            / sum(load["sent"] for load in loads_of_kind.values()))
