"""Instructions per request: the same on a busy machine as on an idle one."""

import collections
import pathlib
import re

import scripts
from servers import Nginx, Redis, output_of

VALGRIND = ["valgrind", "--tool=callgrind", "--callgrind-out-file=profile"]


def read_profile(path):
    """Instructions by (object, source file, function), each without what it calls."""
    names, here, costs = {}, {}, collections.Counter()
    of_callee = False

    for line in path.read_text(errors="replace").splitlines():
        position = re.match(r"(c?)(ob|fl|fi|fe|fn)=\((\d+)\)(?: (.*))?$", line)
        if position:
            callee, kind, number, name = position.groups()
            kind = "fl" if kind in ("fi", "fe") else kind
            if name:
                names[kind, number] = name
            if not callee:
                here[kind] = names[kind, number]
        elif line.startswith("calls="):
            of_callee = True  # the next line says what the called function took
        elif re.match(r"[+\-*\d]", line):
            if not of_callee:
                costs[here["ob"], here["fl"], here["fn"]] += int(line.split()[1])
            of_callee = False

    return costs


def profile(server, number, requests, send):
    """What each of so many requests takes. It is the server's profile of that number."""
    def control(option):
        output_of("callgrind_control", option, str(server.process.pid))

    send(100)
    control("--zero")
    send(requests)
    control("--dump")

    objects, files, functions = (collections.Counter() for _ in range(3))
    for (binary, file, function), cost in read_profile(server.dir / f"profile.{number}").items():
        function = function.replace("(anonymous namespace)::", "").split("(")[0]
        objects[pathlib.Path(binary).name] += cost / requests
        functions[function] += cost / requests
        if "sliding_limit" in binary:
            files[pathlib.Path(file).name] += cost / requests

    return {"total": sum(objects.values()), "objects": objects, "module_files": files,
            "functions": functions}


def of_nginx(module, redis, paths, requests):
    with Nginx(module, redis, under=VALGRIND) as nginx:
        # one after the other: nothing depends on how requests happen to meet
        def send(path):
            return lambda n: output_of(
                "h2load", "--h1", "-c1", "-m1", f"-n{n}", nginx.url(path + "?client=a"))

        return {path: profile(nginx, number, requests, send(path))
                for number, path in enumerate(paths, start=1)}


def of_redis(module, requests):
    """Of the two scripts, called as the module and the peer do, for clients that are no strangers."""
    with Redis(under=VALGRIND) as redis:
        with Nginx(module, redis) as nginx:
            calls = scripts.all_calls(nginx, redis)

        def send(call, per_call):
            scripts.fill(redis, call, scripts.NAMES, scripts.ENTRIES)
            return lambda n: scripts.benchmark(redis, call, n, per_call, "-c", "1", "-P",
                                               str(scripts.PIPELINED // per_call))

        return {name: profile(redis, number, requests, send(*call))
                for number, (name, call) in enumerate(calls.items(), start=1)}
