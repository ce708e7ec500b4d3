"""How long single calls of the script hold up Redis, by its own slow log, where there are very
many entries: with each case the calls that have the most to do."""

import dataclasses
import struct
import time
import typing

from calls import WINDOW, Script, request_id

ENTRIES = 100_000

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


def now_us():
    return time.time_ns() // 1000


def as_ring(text, width, slots):
    """So many bytes for each request, from the middle on."""
    text = text.ljust(width * slots, b"\0")
    rest = width * (slots - slots // 2)
    return text[rest:] + text[:rest]


class Filled(Script):
    """The script, and what others have left for it. Ages are in windows; below 0 they are from the
    future."""

    def __init__(self, redis):
        super().__init__(redis)
        self.fill_digest = self.call("SCRIPT", "LOAD", FILL).decode()
        self.call("CONFIG", "SET", "slowlog-log-slower-than", LOGGED_FROM_US)

    def fill(self, key="k", count=ENTRIES, oldest=0.9, newest=0.1, cost=1):
        self.call("EVALSHA", self.fill_digest, 1, key, count, int(oldest * WINDOW), int(newest * WINDOW),
                  "" if cost == 1 else f"*{cost}", count * (cost - 1))

    def fill_packed(self, key="k", count=ENTRIES, oldest=0.9, newest=0.1, rings=1, cost=1, refused=0, room=1000):
        """A packed log, the oldest in the middle of its rings. So many of the newest were refused;
        there is room for so many more."""
        now, slots = now_us(), count + room
        step = (oldest - newest) * WINDOW / count
        self.times = [int(now - oldest * WINDOW + (n + 1) * step) for n in range(count)]
        admitted = count - refused
        ids = "".join(request_id(n) for n in range(count)).replace("-", "")
        costs = [struct.pack(">QQ", (1 << 56 if n >= admitted else 0) + cost, max(0, n + 1 - admitted) * cost)
                 for n in range(count)] if rings > 2 else []

        self.call("SET", key, b"".join([
            struct.pack(">IQIQIQ", (rings << 24) + slots, now + 2 * WINDOW, slots // 2, self.times[0], count,
                        self.times[-1]),
            struct.pack(">QQQ", count * (cost - 1), refused * cost, refused) if rings > 2 else b"",
            as_ring(struct.pack(f">{count}Q", *self.times), 8, slots),
            as_ring(bytes.fromhex(ids), 16, slots) if rings > 1 else b"",
            as_ring(b"".join(costs), 16, slots) if rings > 2 else b""]), "PX", 2 * WINDOW // 1000)

    def fill_buckets(self, keys):
        width = WINDOW // 100
        ends = [(now_us() // width + 1 - n) * width for n in range(99, -1, -1)]
        counts = [50 + n % 7 for n in range(100)]
        older = b"".join(struct.pack(">QQ", *pair) for pair in zip(ends[:-1], counts))
        for key in keys:
            self.call("SET", key, struct.pack(">BHQQQQQ", 4, 99, ends[-1], ends[0], 0, sum(counts), counts[-1])
                      + older, "PX", 2 * WINDOW // 1000)

    def time_us(self, keys, args):
        """How long the call took, by the slow log."""
        self.send("SLOWLOG", "RESET")
        self.send("EVALSHA", self.digest, len(keys), *keys, *args)
        self.send("SLOWLOG", "GET", 1)
        _, _, logged = (self.read() for _ in range(3))
        return logged[0][2] if logged and logged[0][3][0] == b"EVALSHA" else LOGGED_FROM_US


def limit(maximum, cost=1, algorithm=0, rule=""):
    return [WINDOW, maximum, cost, algorithm, rule]


def packed(maximum, cost=1, rule=""):
    return limit(maximum, cost, "p", rule)


def new_id(number):
    return request_id(10 * ENTRIES + number)


def asked(number, *limits):
    return ["", new_id(number), *(word for each in limits for word in each)]


def sixteen_asked(number, algorithm):
    return [f"/{algorithm}", WINDOW, ENTRIES, *(new_id(16 * number + n) for n in range(16))]


def from_the_middle(script, *limits):
    """Settles a request that so many others came before and after, with the maximum as its true cost."""
    middle = len(script.times) // 2
    return [script.times[middle], request_id(middle), *(word for each in limits for word in each)]


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


def pack_sixteen(script, **what):
    for key in SIXTEEN:
        script.fill_packed(key, 10_000, **what)


def let_expire(script, lazily):
    """Redis itself frees it when it comes across it: at the latest when the client comes back."""
    script.call("CONFIG", "SET", "lazyfree-lazy-expire", lazily)
    script.fill()
    script.call("PEXPIRE", "k", 1)
    time.sleep(0.002)


def falling(number):
    """From what is there down to nothing."""
    return max(1, ENTRIES - number * ENTRIES // 100)


EXPIRED = {"oldest": 2, "newest": 1.1}
PARTLY = {"oldest": 1.5, "newest": 0.5}
AHEAD = {"oldest": 0.4, "newest": -0.4}
COSTS = {"rings": 3, "cost": 2}
REFUSED = {"rings": 3, "refused": ENTRIES}

CASES = [
    Case("a log, admitted", lambda s: s.fill(), lambda s, n: asked(n, limit(2 * ENTRIES)), 20),
    Case("a log, refused", lambda s: s.fill(), lambda s, n: asked(n, limit(9)), 20),
    Case("a log that has expired", lambda s: s.fill(**EXPIRED),
         lambda s, n: asked(n, limit(ENTRIES)), 3),
    Case("a log of which a half has", lambda s: s.fill(**PARTLY), lambda s, n: asked(n, limit(ENTRIES)), 30),
    Case("costs, refused", lambda s: s.fill(cost=2), lambda s, n: asked(n, limit(ENTRIES, 9000)), 20),
    Case("costs that have expired", lambda s: s.fill(**EXPIRED, cost=2),
         lambda s, n: asked(n, limit(ENTRIES, 2)), 3),
    Case("costs of which a half has, admitted", lambda s: s.fill(**PARTLY, cost=2),
         lambda s, n: asked(n, limit(3 * ENTRIES, 2)), 30),
    Case("costs of which a half has, refused", lambda s: s.fill(**PARTLY, cost=2),
         lambda s, n: asked(n, limit(1000, 300)), 30),
    Case("costs of which a half has, settled with more", lambda s: s.fill(**PARTLY, cost=2),
         lambda s, n: [0, new_id(n), *limit(9, 2)], 30),
    Case("count=denied beside 50,000", lambda s: s.fill(count=50_000),
         lambda s, n: asked(n, limit(4, rule="d")), 30),
    Case("count=denied beside 100,000", lambda s: s.fill(), lambda s, n: asked(n, limit(4, rule="d")), 30),
    Case("… with a falling max", lambda s: s.fill(), lambda s, n: asked(n, limit(falling(n), rule="d")), 100),
    Case("… and costs", lambda s: s.fill(cost=2), lambda s, n: asked(n, limit(falling(n), 2, rule="d")), 100),
    Case("a half from the future", lambda s: s.fill(**AHEAD), lambda s, n: asked(n, limit(9)), 30),
    Case("all from the future", lambda s: s.fill(oldest=-0.1, newest=-0.9), lambda s, n: asked(n, limit(9)), 3),
    Case("all from the future, costs", lambda s: s.fill(oldest=-0.1, newest=-0.9, cost=2),
         lambda s, n: asked(n, limit(9, 2)), 3),
    Case("16 limits of 100 buckets, admitted", lambda s: s.fill_buckets(SIXTEEN),
         lambda s, n: asked(n, *[limit(ENTRIES, algorithm=100)] * 16), 20, SIXTEEN),
    Case("16 limits of 100 buckets, refused", lambda s: s.fill_buckets(SIXTEEN),
         lambda s, n: asked(n, *[limit(3000, algorithm=100)] * 16), 20, SIXTEEN),
    Case("16 requests at once, a half expired", lambda s: fill_sixteen(s, **PARTLY),
         lambda s, n: sixteen_asked(n, 0), 30, SIXTEEN),
    Case("16 limits with costs, a half expired", lambda s: fill_sixteen(s, **PARTLY, cost=2),
         lambda s, n: asked(n, *[limit(ENTRIES, 2)] * 16), 30, SIXTEEN),
    Case("packed, admitted", lambda s: s.fill_packed(), lambda s, n: asked(n, packed(2 * ENTRIES)), 20),
    Case("packed, refused", lambda s: s.fill_packed(), lambda s, n: asked(n, packed(9)), 20),
    Case("packed, expired", lambda s: s.fill_packed(**EXPIRED), lambda s, n: asked(n, packed(ENTRIES)), 3),
    Case("packed, a half expired", lambda s: s.fill_packed(**PARTLY),
         lambda s, n: asked(n, packed(ENTRIES)), 30),
    Case("packed, few left of many slots", lambda s: s.fill_packed(count=ENTRIES // 5, room=ENTRIES),
         lambda s, n: ["/p", WINDOW, ENTRIES, new_id(n)], 3),
    Case("packed, no room", lambda s: s.fill_packed(room=0),
         lambda s, n: ["/p", WINDOW, 2 * ENTRIES, new_id(n)], 3),
    Case("packed, with ids, no room", lambda s: s.fill_packed(room=0, rings=2),
         lambda s, n: ["/i", WINDOW, 2 * ENTRIES, new_id(n)], 3),
    Case("packed, with costs, no room", lambda s: s.fill_packed(room=0, **COSTS),
         lambda s, n: asked(n, packed(3 * ENTRIES, 2)), 3),
    Case("packed, the first that costs 2", lambda s: s.fill_packed(),
         lambda s, n: asked(n, packed(3 * ENTRIES, 2)), 3),
    Case("packed, costs, refused", lambda s: s.fill_packed(**COSTS),
         lambda s, n: asked(n, packed(ENTRIES, 9000)), 20),
    Case("packed, costs that have expired", lambda s: s.fill_packed(**EXPIRED, **COSTS),
         lambda s, n: asked(n, packed(ENTRIES, 2)), 3),
    Case("packed, costs, a half expired, admitted", lambda s: s.fill_packed(**PARTLY, **COSTS),
         lambda s, n: asked(n, packed(3 * ENTRIES, 2)), 30),
    Case("packed, costs, a half expired, refused", lambda s: s.fill_packed(**PARTLY, **COSTS),
         lambda s, n: asked(n, packed(1000, 300)), 30),
    Case("packed, count=denied", lambda s: s.fill_packed(**REFUSED),
         lambda s, n: asked(n, packed(4, rule="d")), 30),
    Case("packed, the first refused that counts", lambda s: s.fill_packed(),
         lambda s, n: asked(n, packed(4, rule="d")), 30),
    Case("packed, count=denied, no room, 30,000 matter", lambda s: s.fill_packed(room=1, **REFUSED),
         lambda s, n: asked(n, packed(30_000, rule="d")), 3),
    Case("packed, count=denied, no room, all matter", lambda s: s.fill_packed(room=0, **REFUSED),
         lambda s, n: asked(n, packed(ENTRIES, rule="d")), 3),
    Case("packed, count=denied, a falling max", lambda s: s.fill_packed(room=10, **REFUSED),
         lambda s, n: asked(n, packed(falling(n), rule="d")), 100),
    Case("packed, a half from the future", lambda s: s.fill_packed(**AHEAD),
         lambda s, n: asked(n, packed(9)), 3),
    Case("packed, all from the future", lambda s: s.fill_packed(oldest=-0.1, newest=-0.9),
         lambda s, n: asked(n, packed(9)), 3),
    Case("packed, taken back from the middle", lambda s: s.fill_packed(rings=2),
         lambda s, n: from_the_middle(s, packed(0, rule="i"))),
    Case("packed, with costs, taken back from the middle", lambda s: s.fill_packed(**COSTS),
         lambda s, n: from_the_middle(s, packed(0, 2, rule="i"))),
    Case("packed, with costs, settled with less", lambda s: s.fill_packed(**COSTS),
         lambda s, n: from_the_middle(s, packed(1, 2, rule="i"))),
    Case("packed, with costs, settled with more", lambda s: s.fill_packed(**COSTS),
         lambda s, n: from_the_middle(s, packed(9 + n, 2, rule="i")), 20),
    Case("packed, the first settled with more", lambda s: s.fill_packed(rings=2),
         lambda s, n: from_the_middle(s, packed(9, rule="i"))),
    Case("packed, with costs, a half expired, settled with more", lambda s: s.fill_packed(**PARTLY, **COSTS),
         lambda s, n: from_the_middle(s, packed(9, 2, rule="i"))),
    Case("packed, 16 requests, a half expired", lambda s: pack_sixteen(s, **PARTLY),
         lambda s, n: sixteen_asked(n, "p"), 30, SIXTEEN),
    Case("packed, 16 requests, no room", lambda s: pack_sixteen(s, room=0),
         lambda s, n: sixteen_asked(n, "p"), 3, SIXTEEN),
    Case("packed, with ids, 16 requests, no room", lambda s: pack_sixteen(s, room=0, rings=2),
         lambda s, n: sixteen_asked(n, "i"), 3, SIXTEEN),
    Case("packed, 16 limits with costs, a half expired", lambda s: pack_sixteen(s, **PARTLY, **COSTS),
         lambda s, n: asked(n, *[packed(ENTRIES, 2)] * 16), 30, SIXTEEN),
    Case("a key past its time to live", lambda s: let_expire(s, "yes"), lambda s, n: asked(n, limit(9))),
    Case("… without lazyfree-lazy-expire", lambda s: let_expire(s, "no"), lambda s, n: asked(n, limit(9)),
         is_target=False),
]


def longest_us(script, case, tries):
    """Of a case's calls, each at its best of some tries: a busy machine interrupts Redis, too."""
    def one_try():
        script.call("FLUSHALL", "SYNC")
        case.prepare(script)
        return [script.time_us(case.keys, case.args(script, n)) for n in range(case.calls)]

    return max(min(times) for times in zip(*(one_try() for _ in range(tries))))


def measure(redis, rounds, tries):
    script = Filled(redis)
    return [{case.label: longest_us(script, case, tries) for case in CASES} for _ in range(rounds)]
