"""The script in a Redis, called directly, for many requests at a time."""

import itertools
import socket
import subprocess

from servers import BENCH

WINDOW = 3600 * 1_000_000
MORE_THAN_ENOUGH = 1_000_000

# Of requests so many are asked about in one call, and so many calls are under way.
BATCH = 16
PIPELINED = 100


def request_id(number):
    """Before those that scripts.py makes up: it is older, and sets are sorted by it where times are the same."""
    return f"01890a5d-0000-7000-8000-{number:012d}"


def encoded(*words):
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def command(*words):
    """As it is sent."""
    return b"*%d\r\n" % len(words) + encoded(*words)


class Connection:
    def __init__(self, redis):
        self.socket = socket.create_connection(("127.0.0.1", redis.port))
        self.replies = self.socket.makefile("rb")

    def send(self, *words):
        self.socket.sendall(command(*words))

    def read(self):
        line = self.replies.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise SystemExit(f"bench: Redis says {rest.decode()}")
        if kind == b"*":
            return [self.read() for _ in range(int(rest))]
        if kind == b"$":
            return self.replies.read(int(rest) + 2)[:-2] if rest != b"-1" else None
        return int(rest) if kind == b":" else rest

    def call(self, *words):
        self.send(*words)
        return self.read()

    def pipeline(self, commands):
        """Those that command() has made."""
        commands = iter(commands)
        while some := list(itertools.islice(commands, PIPELINED)):
            self.socket.sendall(b"".join(some))
            for _ in some:
                self.read()


class Script(Connection):
    def __init__(self, redis):
        super().__init__(redis)
        text = subprocess.check_output(["sh", BENCH.parent / "lua" / "assemble"])
        self.digest = self.call("SCRIPT", "LOAD", text).decode()

    def count(self, keys, requests, kind):
        """So many requests of each client, which take turns, as the module asks about them."""
        limit = encoded(kind, WINDOW, MORE_THAN_ENOUGH)
        ids_each = 1 if kind == "l" else 0
        groups = [keys[first:first + BATCH] for first in range(0, len(keys), BATCH)]
        beginnings = [(ids_each * len(group), b"*%d\r\n" % (6 + (1 + ids_each) * len(group))
                       + encoded("EVALSHA", self.digest, len(group), *group) + limit) for group in groups]

        self.pipeline(beginning + encoded(request_id(n)) * ids
                      for n in range(requests) for ids, beginning in beginnings)
