"""How long single calls of the script hold up Redis, by its own slow log, where there are very
many entries: with each case the calls that have the most to do."""

import dataclasses
import socket
import time
import typing

from servers import BENCH

ENTRIES = 100_000
WINDOW = 3600 * 1_000_000

# Faster calls count as this: commands inside of the script must not flood the log.
LOGGED_FROM_US = 50

# Entries from one age to another, evenly, as that many requests would have left them.
FILL = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local count, oldest, newest, suffix, surplus = unpack(ARGV)
redis.call('DEL', KEYS[1])
for first = 1, count, 500 do
    local words = {}
    for i = first, first + 499 do
        words[#words + 1] = string.format('%.0f', now - oldest + i * (oldest - newest) / count)
        words[#words + 1] = string.format('0190a5e0-0000-7000-8000-%012d', i) .. suffix
    end
    redis.call('ZADD', KEYS[1], unpack(words))
end
if surplus ~= '0' then redis.call('ZADD', KEYS[1], 0, '+' .. surplus) end
redis.call('PEXPIRE', KEYS[1], 7200000)
"""


class Connection:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.replies = self.socket.makefile("rb")

    def send(self, *words):
        words = [str(word).encode() for word in words]
        self.socket.sendall(b"".join([b"*%d\r\n" % len(words),
                                      *(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)]))

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


class Script:
    """The script in this Redis, and sets for it."""

    def __init__(self, redis):
        self.connection = Connection(redis.port)
        self.digest = self.connection.call(
            "SCRIPT", "LOAD", (BENCH.parent / "lua" / "sliding_window.lua").read_text()).decode()
        self.fill_digest = self.connection.call("SCRIPT", "LOAD", FILL).decode()
        self.call("CONFIG", "SET", "slowlog-log-slower-than", LOGGED_FROM_US)

    def call(self, *words):
        return self.connection.call(*words)

    def fill(self, key="k", count=ENTRIES, oldest=0.9, newest=0.1, cost=1):
        """Ages in windows; below 0 they are from the future."""
        self.call("EVALSHA", self.fill_digest, 1, key, count, int(oldest * WINDOW), int(newest * WINDOW),
                  "" if cost == 1 else f"*{cost}", count * (cost - 1))

    def fill_buckets(self, keys):
        now, width = time.time_ns() // 1000, WINDOW // 100
        for key in keys:
            self.call("ZADD", key, *(word for n in range(100)
                                     for word in (50 + n % 7, (now // width + 1 - n) * width)))
            self.call("PEXPIRE", key, 7200000)

    def time_us(self, keys, args):
        """How long the call took, by the slow log."""
        self.connection.send("SLOWLOG", "RESET")
        self.connection.send("EVALSHA", self.digest, len(keys), *keys, *args)
        self.connection.send("SLOWLOG", "GET", 1)
        _, _, logged = (self.connection.read() for _ in range(3))
        return logged[0][2] if logged and logged[0][3][0] == b"EVALSHA" else LOGGED_FROM_US


def limit(maximum, cost=1, buckets=0, rule=""):
    return [WINDOW, maximum, cost, buckets, rule]


def asked(number, *limits):
    return ["", f"id{number}", *(word for each in limits for word in each)]


@dataclasses.dataclass
class Case:
    """What is there, and calls: their number, and the arguments of the one of that number."""
    label: str
    prepare: typing.Callable
    args: typing.Callable
    calls: int = 1
    keys: tuple = ("k",)
    is_target: bool = True


SIXTEEN = tuple(f"k{n}" for n in range(16))


def fill_sixteen(script, **what):
    for key in SIXTEEN:
        script.fill(key, 10_000, **what)


def let_expire(script, lazily):
    """Redis itself frees it when it comes across it: at the latest when the client comes back."""
    script.call("CONFIG", "SET", "lazyfree-lazy-expire", lazily)
    script.fill()
    script.call("PEXPIRE", "k", 1)
    time.sleep(0.002)


def falling(number):
    """From what is there down to nothing."""
    return max(1, ENTRIES - number * ENTRIES // 100)


PARTLY = {"oldest": 1.5, "newest": 0.5}
AHEAD = {"oldest": 0.4, "newest": -0.4}

CASES = [
    Case("a log, admitted", lambda s: s.fill(), lambda n: asked(n, limit(2 * ENTRIES)), 20),
    Case("a log, refused", lambda s: s.fill(), lambda n: asked(n, limit(9)), 20),
    Case("a log that has expired", lambda s: s.fill(oldest=2, newest=1.1),
         lambda n: asked(n, limit(ENTRIES)), 3),
    Case("a log of which a half has", lambda s: s.fill(**PARTLY), lambda n: asked(n, limit(ENTRIES)), 30),
    Case("costs, refused", lambda s: s.fill(cost=2), lambda n: asked(n, limit(ENTRIES, 9000)), 20),
    Case("costs that have expired", lambda s: s.fill(oldest=2, newest=1.1, cost=2),
         lambda n: asked(n, limit(ENTRIES, 2)), 3),
    Case("costs of which a half has, admitted", lambda s: s.fill(**PARTLY, cost=2),
         lambda n: asked(n, limit(3 * ENTRIES, 2)), 30),
    Case("costs of which a half has, refused", lambda s: s.fill(**PARTLY, cost=2),
         lambda n: asked(n, limit(1000, 300)), 30),
    Case("count=denied beside 50,000", lambda s: s.fill(count=50_000),
         lambda n: asked(n, limit(4, rule="d")), 30),
    Case("count=denied beside 100,000", lambda s: s.fill(), lambda n: asked(n, limit(4, rule="d")), 30),
    Case("… with a falling max", lambda s: s.fill(), lambda n: asked(n, limit(falling(n), rule="d")), 100),
    Case("… and costs", lambda s: s.fill(cost=2), lambda n: asked(n, limit(falling(n), 2, rule="d")), 100),
    Case("a half from the future", lambda s: s.fill(**AHEAD), lambda n: asked(n, limit(9)), 30),
    Case("all from the future", lambda s: s.fill(oldest=-0.1, newest=-0.9), lambda n: asked(n, limit(9)), 3),
    Case("all from the future, costs", lambda s: s.fill(oldest=-0.1, newest=-0.9, cost=2),
         lambda n: asked(n, limit(9, 2)), 3),
    Case("16 limits of 100 buckets, admitted", lambda s: s.fill_buckets(SIXTEEN),
         lambda n: asked(n, *[limit(ENTRIES, buckets=100)] * 16), 20, SIXTEEN),
    Case("16 limits of 100 buckets, refused", lambda s: s.fill_buckets(SIXTEEN),
         lambda n: asked(n, *[limit(3000, buckets=100)] * 16), 20, SIXTEEN),
    Case("16 requests at once, a half expired", lambda s: fill_sixteen(s, **PARTLY),
         lambda n: ["/1", WINDOW, ENTRIES, *(f"id{n}-{i}" for i in range(16))], 30, SIXTEEN),
    Case("16 limits with costs, a half expired", lambda s: fill_sixteen(s, **PARTLY, cost=2),
         lambda n: asked(n, *[limit(ENTRIES, 2)] * 16), 30, SIXTEEN),
    Case("a key past its time to live", lambda s: let_expire(s, "yes"), lambda n: asked(n, limit(9))),
    Case("… without lazyfree-lazy-expire", lambda s: let_expire(s, "no"), lambda n: asked(n, limit(9)),
         is_target=False),
]


def longest_us(script, case, tries):
    """Of a case's calls, each at its best of some tries: a busy machine interrupts Redis, too."""
    def one_try():
        script.call("FLUSHALL", "SYNC")
        case.prepare(script)
        return [script.time_us(case.keys, case.args(n)) for n in range(case.calls)]

    return max(min(times) for times in zip(*(one_try() for _ in range(tries))))


def measure(redis, rounds, tries):
    script = Script(redis)
    return [{case.label: longest_us(script, case, tries) for case in CASES} for _ in range(rounds)]
