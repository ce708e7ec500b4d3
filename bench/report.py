"""Tables of what was measured, and which targets that reaches."""

import statistics

import exactness
import redis_memory
import scripts
import slowest
from variants import ALGORITHMS, VARIANTS

SCRIPTS = {"common": "the common script",
           **{name + suffix: f"the module's, {name}, {how_many}" for name in scripts.ALGORITHMS
              for suffix, how_many in (("", "one request"), ("_batch", "eight at once"))}}


def median(rounds, name):
    return statistics.median(r[name] for r in rounds)


def ratios(measured, name, other, value):
    """Of two variants, round by round: noise that lasts longer than a round cancels out."""
    return [a[value] / b[value] for a, b in zip(measured[name], measured[other])]


def quartiles(values):
    """The bounds of the middle half: what disturbs a single round does not show."""
    low, _, high = statistics.quantiles(values * 2 if len(values) == 1 else values, method="inclusive")
    return low, high


def with_spread(values, digits=2):
    low, high = quartiles(values)
    return f"{statistics.median(values):.{digits}f} [{low:.{digits}f}–{high:.{digits}f}]"


def print_table(title, header, rows):
    print(f"\n{title}\n")
    widths = [max(len(str(row[i])) for row in (header, *rows)) for i in range(len(header))]
    for row in (header, *rows) if any(header) else rows:
        cells = [f"{cell:<{width}}" if i == 0 else f"{cell:>{width}}"
                 for i, (cell, width) in enumerate(zip(row, widths))]
        print("  " + "  ".join(cells).rstrip())


def print_variants(results):
    def row(variant):
        rounds = results["variants"][variant.name]
        return [variant.label, f"{median(rounds, 'requests_per_second'):,.0f}",
                f"{median(rounds, 'p50_us'):,.0f}", f"{median(rounds, 'p99_us'):,.0f}",
                f"{median(rounds, 'nginx_us'):.2f}", f"{median(rounds, 'redis_us'):.2f}",
                f"{median(rounds, 'redis_evalsha'):.3f}", f"{median(rounds, 'redis_commands'):.3f}"]

    def ratio(variant, peer, value):
        return with_spread(ratios(results["variants"], variant.name, peer, value)) if peer else ""

    print_table("Per request (32 connections; medians; µs; commands with those inside of scripts)",
                ["", "requests/s", "p50", "p99", "nginx CPU", "Redis CPU", "EVALSHA", "commands"],
                [row(variant) for variant in VARIANTS])

    for title, value in (("Requests per second", "requests_per_second"), ("CPU of nginx", "nginx_us")):
        print_table(f"{title}, as a ratio to its like (median [quartiles] of the rounds)",
                    ["", "to no limit", "to limit_req", "to nginx-Lua"],
                    [[variant.label, *(ratio(variant, peer, value) for peer in variant.peers)]
                     for variant in VARIANTS])


def print_growth(results, step, what):
    def point(p):
        return f"{p['nginx_us']:.2f} / {p['redis_us']:.2f}"

    paths = {path: points for path, points in results[step].items() if path.startswith("/")}
    sizes = list(next(iter(paths.values())))
    print_table(f"µs of CPU per request, nginx / Redis, by {what}",
                ["", *(f"{size:,}" for size in sizes)],
                [[path[1:], *(point(points[size]) for size in sizes)] for path, points in paths.items()])


def print_entries(results):
    print_growth(results, "entries", "entries in the window")
    print_bytes("Redis, bytes per counted request, by entries in the window",
                results["entries"]["redis_bytes_per_entry"])


def print_bytes(title, values):
    print_table(title, ["", *values], [["", *(f"{n:.0f}" for n in values.values())]])


def print_redis_memory(results):
    by_algorithm = results["redis_memory"]
    print_table("Redis, bytes per client, by counted requests", ["", *by_algorithm],
                [[f"{requests:,}", *(f"{sizes[requests]:,.0f}" for sizes in by_algorithm.values())]
                 for requests in redis_memory.REQUESTS])


def print_table_memory(results):
    print_bytes("Embedded store, bytes per client, by counted requests", results["table_memory"])


def print_table_taking_back(results):
    rounds = results["table_taking_back"]
    print_table("Embedded store, requests taken back per second, by counted requests of the client",
                ["", "100", "400,000", "400,000, after a kill"],
                [["", *(f"{median(rounds, name):,.0f}" for name in ("few", "many", "many_killed"))]])


BODIES = {"long_string": "JSON with a long string", "small_members": "JSON with many small members that are skipped",
          "members_beside": "JSON with many members beside the path", "events": "events of 194 bytes",
          "spaced_events": "events with spaces in their JSON"}
PIECES = ("4k", "16k")


def print_usage_scan(results):
    rounds = results["usage_scan"]

    def cells(body):
        for piece in PIECES:
            values = [r[f"{body}_{piece}"] for r in rounds]
            yield with_spread([v["scanned"] for v in values])
            yield f"{statistics.median(v['copied'] / v['scanned'] for v in values):.0f}"

    print_table("Looking for a usage in what passes, GB per second of one processor (median [quartiles] of the rounds), "
                "and how many times as fast memcpy() copies it",
                ["", *(cell for piece in PIECES for cell in (f"pieces of {piece[:-1]} KB", "memcpy()"))],
                [[label, *cells(body)] for body, label in BODIES.items()])


def print_most(title, counts):
    most = sorted(counts.items(), key=lambda item: -item[1])[:12]
    print_table(title, ["", ""], [[name[:60], f"{n:,.0f}"] for name, n in most])


def added(profile, other):
    names = profile["functions"].keys() | other["functions"].keys()
    return {name: profile["functions"].get(name, 0) - other["functions"].get(name, 0) for name in names}


def print_instructions(results):
    of_nginx, of_redis = results["instructions"]["nginx"], results["instructions"]["redis"]
    base = of_nginx["/no_limit"]["total"]

    print_table("Instructions of nginx per request (callgrind; one request at a time)",
                ["", "in all", "added", "in the module"],
                [[path[1:], f"{profile['total']:,.0f}", f"{profile['total'] - base:+,.0f}",
                  f"{sum(profile['module_files'].values()):,.0f}"]
                 for path, profile in of_nginx.items()])

    for path, other in (("/redis", "/no_limit"), ("/memory", "/no_limit"),
                        ("/redis_refusing", "/limit_req_refusing")):
        print_most(f"{path[1:]}: the module's, by source file", of_nginx[path]["module_files"])
        print_most(f"{path[1:]}: added to {other[1:]}, by function",
                   added(of_nginx[path], of_nginx[other]))

    print_table("Instructions of Redis per request (callgrind; pipelined)", ["", ""],
                [[label, f"{of_redis[name]['total']:,.0f}"] for name, label in SCRIPTS.items()])
    for name in scripts.ALGORITHMS:
        print_most(f"the module's script, {name}, eight requests at once, by function",
                   of_redis[f"{name}_batch"]["functions"])


def print_scripts(results):
    def of(name, value):
        return statistics.median(r[name][value] for r in results["scripts"])

    print_table("Scripts, pipelined by redis-benchmark: Redis, per request",
                ["", "µs of CPU", "bytes kept"],
                [[label, f"{of(name, 'redis_us'):.2f}", f"{of(name, 'bytes'):.0f}"]
                 for name, label in SCRIPTS.items()])


def print_algorithms(results):
    measured = results["algorithms"]

    def row(name, load):
        rounds = measured[name]
        return [load.label, f"{median(rounds, 'requests_per_second'):,.0f}",
                *(cell for value in ("nginx_us", "redis_us")
                  for cell in (f"{median(rounds, value):.2f}", with_spread(ratios(measured, name, "log", value)))),
                f"{median(rounds, 'redis_evalsha'):.3f}", f"{median(rounds, 'redis_commands'):.3f}"]

    print_table("Algorithms, per request (64 connections; medians; µs; as a ratio to the log, median [quartiles] "
                "of the rounds)",
                ["", "requests/s", "nginx CPU", "to log", "Redis CPU", "to log", "EVALSHA", "commands"],
                [row(name, load) for name, load in ALGORITHMS.items()])


def print_leaving(results):
    print_table("Algorithms where requests leave as others come, µs of CPU per request (medians)",
                ["", "nginx", "Redis", "commands"],
                [[name, *(f"{median(rounds, value):.2f}" for value in ("nginx_us", "redis_us", "redis_commands"))]
                 for name, rounds in results["leaving"].items()])


def print_slowest(results):
    rounds = results["slowest"]
    print_table(f"The longest call of the script, by Redis's slow log, with {slowest.ENTRIES:,} entries "
                f"in a log and {slowest.PACKED:,} in a packed one (each call at its best; {slowest.LOGGED_FROM_US} µs at least)", ["", "µs"],
                [[case.label + ("" if case.is_target else " (no target)"), f"{median(rounds, case.label):,.0f}"]
                 for case in slowest.CASES])


def print_exactness(results):
    measured = results["exactness"]
    kinds = list(next(iter(measured["limiters"].values())))

    def bounds(load):
        return f"{load['most_certain']:.2f}–{load['most_possible']:.2f}"

    def rows(cell):
        return [[limiter.label, *(cell(measured["limiters"][limiter.path][kind]) for kind in kinds)]
                for limiter in exactness.LIMITERS]

    print_table("The most that were let through in any true window, as a multiple of the limit of "
                f"{measured['max']} in {measured['window_ms']} ms (at least–at most)",
                ["", *kinds], rows(lambda loads: bounds(exactness.worst(loads))))
    print_table("Refused although the true window had room, of all requests",
                ["", *kinds], rows(lambda loads: f"{exactness.share_refused_with_room(loads):.1%}"))


def print_latency(results):
    rounds = results["latency"]["rounds"]
    rows = [[what, f"{median(rounds, name + '_p50_us'):.0f}", f"{median(rounds, name + '_p99_us'):.0f}"]
            for what, name in (("no limit", "no_limit"), ("this module, Redis", "redis"),
                               ("a bare call to Redis", "round_trip"))]
    print_table(f"Latency in µs at {results['latency']['rate']:,.0f} requests per second "
                "(evenly spaced)", ["", "p50", "p99"], rows)


def targets(results):
    """By step that measured them: (what, its value by round, at most or at least, the bound)."""
    def of_variants(variants):
        added = [(ours["nginx_us"] - none["nginx_us"]) / (lua["nginx_us"] - none["nginx_us"])
                 for ours, none, lua in zip(variants["redis"], variants["no_limit"], variants["lua"])]
        calls = [r["redis_evalsha"] for r in variants["redis_refusing"]]

        def ratio(name, other, value="requests_per_second"):
            return ratios(variants, name, other, value)

        return [
            ("nginx CPU that a check over Redis adds / what nginx-Lua adds", added, "≤", 0.2),
            ("Redis CPU per check / nginx-Lua's", ratio("redis", "lua", "redis_us"), "≤", 0.45),
            ("Redis CPU per check while entries expire / nginx-Lua's",
             ratio("redis_sliding", "lua_sliding", "redis_us"), "≤", 0.45),
            ("requests per second over Redis / nginx-Lua's", ratio("redis", "lua"), "≥", 2.2),
            ("requests per second, refused (deny cache) / limit_req's",
             ratio("redis_refusing", "limit_req_refusing"), "≥", 0.9),
            ("nginx CPU, refused (deny cache) / limit_req's",
             ratio("redis_refusing", "limit_req_refusing", "nginx_us"), "≤", 1 / 0.9),
            ("commands sent to Redis per refused request", calls, "≤", 0.01),
            ("requests per second, embedded store / limit_req's",
             ratio("memory", "limit_req"), "≥", 0.95),
            ("nginx CPU, embedded store / limit_req's",
             ratio("memory", "limit_req", "nginx_us"), "≤", 1 / 0.95)]

    def of_exactness(measured):
        def most(limiter):
            return max(exactness.worst(loads)["most_certain"]
                       for loads in measured["limiters"][limiter.path].values())

        def needless(limiter):
            return max(exactness.share_refused_with_room(loads)
                       for loads in measured["limiters"][limiter.path].values())

        return [*((f"the most let through in a window / the limit: {limiter.label}",
                   [most(limiter)], "≤", 1) for limiter in exactness.LIMITERS if limiter.is_ours),
                *((f"share refused although there was room: {limiter.label}",
                   [needless(limiter)], "≤", 0) for limiter in exactness.LIMITERS if limiter.is_never_early)]

    def of_latency(latency):
        def added(bare):
            return [(r["redis_p99_us"] - r["no_limit_p99_us"]) / r[bare] for r in latency["rounds"]]

        return [("p99 added at half of saturation / p99 of a bare call to Redis",
                 added("round_trip_p99_us"), "≤", 2),
                ("p99 added at half of saturation / median of a bare call to Redis",
                 added("round_trip_p50_us"), "≤", 2)]

    def of_scripts(rounds):
        return [("Redis CPU, eight requests at once, pipelined / the common script's",
                 [r["log_batch"]["redis_us"] / r["common"]["redis_us"] for r in rounds], "≤", 7 / 9.2)]

    def of_algorithms(measured):
        def ratio(name, other):
            return ratios(measured, name, other, "redis_us")

        return [("Redis CPU per check, packed / log", ratio("packed", "log"), "≤", 0.65),
                ("Redis CPU per check, buckets / log", ratio("buckets", "log"), "≤", 0.75),
                ("Redis CPU per check, log, cost 5 / cost 1", ratio("log_5", "log"), "≤", 2),
                ("Redis CPU per check, packed, cost 5 / cost 1", ratio("packed_5", "packed"), "≤", 1.3),
                ("Redis CPU per check, buckets, cost 5 / cost 1", ratio("buckets_5", "buckets"), "≤", 1.3),
                ("Redis CPU per check, log, two limits / one", ratio("log_2", "log"), "≤", 1.6),
                ("Redis CPU per check, packed, two limits / one", ratio("packed_2", "packed"), "≤", 1.6),
                ("Redis CPU per check, packed, 8,000 requests / 10", ratio("packed_many", "packed_few"), "≤", 1.3)]

    def of_leaving(measured):
        return [("Redis CPU per check, requests leave, packed / log", ratios(measured, "packed", "log", "redis_us"), "≤", 0.65),
                ("Redis CPU per check, requests leave, buckets / log", ratios(measured, "buckets", "log", "redis_us"), "≤", 0.75)]

    def of_slowest(rounds):
        return [(f"ms that a call of the script holds up Redis, at most, with {slowest.ENTRIES:,} entries in a log",
                 [max(r[case.label] for case in slowest.CASES if case.is_target) / 1000 for r in rounds],
                 "≤", 1)]

    def of_instructions(instructions):
        of_redis = instructions["redis"]
        return [("Redis instructions, eight requests at once / the common script's",
                 [of_redis["log_batch"]["total"] / of_redis["common"]["total"]], "≤", 7 / 9.2)]

    def of_entries(entries):
        def growth(path, value):
            return [entries[path][10000][value] / entries[path][10][value]]

        return [("Redis CPU, 10,000 entries / 10", growth("/redis", "redis_us"), "≤", 1.5),
                ("nginx CPU, embedded store, 10,000 entries / 10",
                 growth("/memory", "nginx_us"), "≤", 1.1)]

    def of_taking_back(rounds):
        return [(f"requests taken back per second, embedded store, 400,000 entries{when} / 100",
                 [r[name] / r["few"] for r in rounds], "≥", 0.8)
                for name, when in (("many", ""), ("many_killed", " after a kill"))]

    def of_usage_scan(rounds):
        return [(f"GB per second in which a usage is looked for: {label}, pieces of {piece[:-1]} KB",
                 [r[f"{body}_{piece}"]["scanned"] for r in rounds], "≥", 1)
                for body, label in BODIES.items() for piece in PIECES]

    def of_redis_memory(measured):
        return [("KB of Redis for a client with 100 requests in a packed log", [measured["packed"][100] / 1000], "≤", 1.5)]

    by_step = {"variants": of_variants, "exactness": of_exactness, "latency": of_latency, "scripts": of_scripts,
               "algorithms": of_algorithms, "leaving": of_leaving, "slowest": of_slowest, "instructions": of_instructions,
               "entries": of_entries, "redis_memory": of_redis_memory, "table_taking_back": of_taking_back,
               "usage_scan": of_usage_scan}
    return [target for step, find in by_step.items() if step in results
            for target in find(results[step])]


def check_targets(results):
    checked = []
    for what, values, relation, bound in targets(results):
        def is_reached(value):
            return value <= bound if relation == "≤" else value >= bound

        measured = statistics.median(values)
        low, high = quartiles(values)
        checked.append({"what": what, "relation": relation, "bound": bound, "values": values,
                        "measured": measured, "reached": is_reached(measured),
                        "clear": is_reached(low) == is_reached(high)})
    return checked


def print_targets(results):
    rows = [[target["what"], f"{target['relation']} {target['bound']:.2f}",
             with_spread(target["values"], 4 if target["bound"] < 0.1 else 2),
             ("" if target["clear"] else "unclear: ") + ("reached" if target["reached"] else "not reached")]
            for target in results["targets"]]
    print_table("Targets (median [quartiles] of the rounds; unclear where these disagree)",
                ["", "target", "measured", ""], rows)


def print_all(results):
    machine = results["machine"]
    print(f"{machine['cpus']} processors, of which others used {machine['used_by_others']:.1f} meanwhile"
          f"; {results['rounds']} rounds of {results['seconds']} s")

    tables = {"variants": print_variants, "exactness": print_exactness, "latency": print_latency, "scripts": print_scripts,
              "algorithms": print_algorithms, "leaving": print_leaving, "slowest": print_slowest, "instructions": print_instructions,
              "entries": print_entries,
              "clients": lambda r: print_growth(r, "clients", "clients"),
              "limits": lambda r: print_growth(r, "limits", "limits per request"),
              "connections": lambda r: print_growth(r, "connections", "connections"),
              "redis_memory": print_redis_memory,
              "table_memory": print_table_memory, "table_taking_back": print_table_taking_back,
              "usage_scan": print_usage_scan}
    for step, print_step in tables.items():
        if step in results:
            print_step(results)

    print_targets(results)
