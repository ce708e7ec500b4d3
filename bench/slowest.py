"""How long single calls of the script hold up Redis, by its own slow log, where there are very
many entries: with each case the calls that have the most to do."""

import dataclasses
import struct
import time
import typing

from calls import WINDOW, Script, request_id

# of a log, and the most that a packed one has
ENTRIES, PACKED = 100_000, 10_000
# what a request of a log, packed or not, may cost at most
COST = 1000

# Faster calls count as this: commands inside of the script must not flood the log.
LOGGED_FROM_US = 50

# Entries from one age to another, evenly, as that many requests would have left them.
FILL = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local count, oldest, newest = unpack(ARGV)
redis.call('DEL', KEYS[1])
for first = 1, count, 500 do
    local words = {}
    for i = first, first + 499 do
        words[#words + 1] = string.format('%.0f', now - oldest + i * (oldest - newest) / count)
        words[#words + 1] = string.format('0190a5e0-0000-7000-8000-%012d', i)
    end
    redis.call('ZADD', KEYS[1], unpack(words))
end
redis.call('PEXPIRE', KEYS[1], 7200000)
"""


def now_us():
    return time.time_ns() // 1000


class Filled(Script):
    """The script, and what others have left for it. Ages are in windows; below 0 they are from the
    future."""

    def __init__(self, redis):
        super().__init__(redis)
        self.fill_digest = self.call("SCRIPT", "LOAD", FILL).decode()
        self.call("CONFIG", "SET", "slowlog-log-slower-than", LOGGED_FROM_US)

    def fill(self, keys=("k",), count=ENTRIES, oldest=0.9, newest=0.1):
        for key in keys:
            self.call("EVALSHA", self.fill_digest, 1, key, count, int(oldest * WINDOW), int(newest * WINDOW))

    def fill_packed(self, keys=("k",), count=PACKED, oldest=0.9, newest=0.1, gone=0):
        """So many more have left, but are still there."""
        now = now_us()
        step = (oldest - newest) * WINDOW / count
        self.times = [int(now - oldest * WINDOW + (n + 1) * step) for n in range(count)]
        text = (struct.pack(">IIQQQ", gone, count, self.times[0], self.times[-1], now + 2 * WINDOW)
                + struct.pack(f">{gone + count}Q", *[now - 2 * WINDOW] * gone, *self.times))
        for key in keys:
            self.call("SET", key, text, "PX", 2 * WINDOW // 1000)

    def fill_buckets(self, keys=("k",), age=0, newest=0):
        """A hundred, of which so many have left."""
        width = WINDOW // 100
        latest = now_us() // width + 1 - age - newest
        ends = [(latest - n) * width for n in range(99, -1, -1)]
        counts = [50 + n % 7 for n in range(100)]
        older = b"".join(struct.pack(">QQ", *pair) for pair in zip(ends[:-1], counts))
        for key in keys:
            self.call("SET", key, struct.pack(">IQQQQQ", 99, ends[-1], ends[0], 0, sum(counts), counts[-1])
                      + older, "PX", 2 * WINDOW // 1000)

    def add(self, number, kind):
        """A request, by a check: its id, and when that was."""
        reply = self.call("EVALSHA", self.digest, 1, "k", *check([number], (kind, ENTRIES * 9)))
        return new_id(number), struct.unpack("<q", reply[24:32])[0]

    def time_us(self, keys, args):
        """How long the call took, by the slow log."""
        self.send("SLOWLOG", "RESET")
        self.send("EVALSHA", self.digest, len(keys), *keys, *args)
        self.send("SLOWLOG", "GET", 1)
        _, _, logged = (self.read() for _ in range(3))
        return logged[0][2] if logged and logged[0][3][0] == b"EVALSHA" else LOGGED_FROM_US


def new_id(number):
    return request_id(10 * ENTRIES + number)


def kinds_of(limits):
    return "/".join(kind for kind, _ in limits)


def numbers_of(limits):
    return [word for _, number in limits for word in (WINDOW, number)]


def check(requests, *limits):
    """Limits are a kind and a max."""
    return [kinds_of(limits), *numbers_of(limits), *map(new_id, requests)]


def alone(*limits):
    return lambda script, number: check([number], *limits)


def sixteen(kind, maximum):
    return lambda script, number: check(range(16 * number, 16 * number + 16), (kind, maximum))


def settle(number_of_request, counted_at, *limits):
    """Limits are a kind, with what was counted, and the true cost."""
    return [":settle", kinds_of(limits), counted_at, number_of_request, *numbers_of(limits)]


def settle_added(kind, true_cost):
    """A request that has just been counted."""
    def args(script, number):
        identifier, moment = script.add(number, kind)
        return settle(identifier, moment, (kind, true_cost))
    return args


def settle_in_the_middle(kind, true_cost):
    """One that so many others came before and after."""
    return lambda script, n: settle(request_id(n), script.times[len(script.times) // 2 + n], (kind, true_cost))


def of_operator(act, kind, lasts=0, maximum=0):
    return lambda script, number: [act, kind, lasts, maximum, WINDOW, 1]


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
AND_INDEX = ("k", "index")

EXPIRED = {"oldest": 2, "newest": 1.1}
PARTLY = {"oldest": 1.5, "newest": 0.5}
AHEAD = {"oldest": 0.4, "newest": -0.4}
ALL_AHEAD = {"oldest": -0.1, "newest": -0.9}


def log(**what):
    return lambda script: script.fill(**what)


def packed(**what):
    return lambda script: script.fill_packed(**what)


def buckets(**what):
    return lambda script: script.fill_buckets(**what)


def let_expire(lazily):
    """Redis itself frees it when it comes across it: at the latest when the client comes back."""
    def prepare(script):
        script.call("CONFIG", "SET", "lazyfree-lazy-expire", lazily)
        script.fill()
        script.call("PEXPIRE", "k", 1)
        time.sleep(0.002)
    return prepare


def falling(kind, entries):
    """A max that falls from what is there down to nothing."""
    return lambda script, n: check([n], (kind, max(1, entries - n * entries // 100)))


def cases_of_format(name, kind, full, entries):
    """Those that all formats have. full(**what) fills keys with so many entries."""
    return [
        Case(f"{name}, admitted", full(), alone((kind, 2 * entries)), 20),
        Case(f"{name}, refused", full(), alone((kind, 9)), 20),
        Case(f"{name}, a half from the future", full(**AHEAD), alone((kind, 9)), 5),
        Case(f"{name}, all from the future", full(**ALL_AHEAD), alone((kind, 9)), 5),
        Case(f"{name}, has expired", full(**EXPIRED), alone((kind, 2 * entries)), 3),
        Case(f"{name}, a half has", full(**PARTLY), alone((kind, 2 * entries)), 30),
        Case(f"{name}, a half has, refused", full(**PARTLY), alone((kind, 9)), 30),
        Case(f"{name}, cost {COST}", full(), alone((f"{kind}*{COST}", 9 * entries)), 5),
        Case(f"{name}, cost {COST}, a half has expired", full(**PARTLY), alone((f"{kind}*{COST}", 9 * entries)), 30),
        Case(f"{name}, cost {COST}, refused", full(), alone((f"{kind}*{COST}", entries)), 20),
        Case(f"{name}, count=denied", full(), alone((f"{kind}d", 4)), 30),
        Case(f"{name}, count=denied, a falling max", full(), falling(f"{kind}d", entries), 100),
        Case(f"{name}, count=denied, cost {COST}, a falling max", full(), falling(f"{kind}*{COST}d", entries), 100),
        *(Case(f"{name}, {when}{what}", full(**age), of_operator(act, kind, lasts, 5), keys=AND_INDEX)
          for age, when in (({}, ""), (PARTLY, "a half has expired, "))
          for act, lasts, what in ((":look", 0, "looked at"), (":ban", WINDOW, "banned"), (":ban", 0, "ban lifted"),
                                   (":max", WINDOW, "another max"), (":forget", 0, "forgotten"))),
        Case(f"{name}, 16 requests", full(keys=SIXTEEN, count=PACKED), sixteen(kind, 2 * entries), 5, SIXTEEN),
        Case(f"{name}, 16 requests, a half expired", full(keys=SIXTEEN, count=PACKED, **PARTLY),
             sixteen(kind, 2 * entries), 30, SIXTEEN),
        Case(f"{name}, 16 requests refused, all from the future", full(keys=SIXTEEN, count=PACKED, **ALL_AHEAD),
             sixteen(kind, 9), 5, SIXTEEN),
        Case(f"{name}, 16 limits, a half expired", full(keys=SIXTEEN, count=PACKED, **PARTLY),
             alone(*[(kind, 2 * entries)] * 16), 30, SIXTEEN),
        Case(f"{name}, 16 requests that cost {COST}", full(keys=SIXTEEN, count=PACKED),
             sixteen(f"{kind}*{COST}", 9 * entries), 5, SIXTEEN),
        Case(f"{name}, 16 requests that cost {COST}, refused", full(keys=SIXTEEN, count=PACKED),
             sixteen(f"{kind}*{COST}", PACKED), 5, SIXTEEN),
        Case(f"{name}, 16 requests that cost {COST}, count=denied", full(keys=SIXTEEN, count=PACKED),
             sixteen(f"{kind}*{COST}d", PACKED), 5, SIXTEEN)]


def full_buckets(count=0, oldest=0.9, newest=0, **what):
    """How many entries there are makes no difference; what is older or newer, only as whole buckets."""
    return buckets(age=max(0, round((oldest - 1) * 100)), newest=round(newest * 100) if newest < 0 else 0, **what)


CASES = [
    *cases_of_format("log", "l", log, ENTRIES),
    Case("log, count=denied beside 50,000", log(count=50_000), alone(("ld", 4)), 30),
    Case(f"log, cost {COST}, settled with 1", log(), settle_added(f"l*{COST}", 1), 5),
    Case(f"log, cost {COST}, taken back", log(), settle_added(f"l*{COST}", 0), 5),
    Case(f"log, settled with {COST}", log(), settle_added("l", COST), 5),
    Case(f"log, settled with {COST}, a half expired", log(**PARTLY), settle_added("l", COST), 30),
    *cases_of_format("packed", "p", packed, PACKED),
    Case("packed, written anew", packed(count=PACKED - 1, gone=PACKED), alone(("p", 2 * PACKED))),
    Case("packed, 16 requests, written anew", packed(count=PACKED - 1, gone=PACKED, keys=SIXTEEN),
         sixteen("p", 2 * PACKED), 1, SIXTEEN),
    Case("packed, 16 limits, written anew", packed(count=PACKED - 1, gone=PACKED, keys=SIXTEEN),
         alone(*[("p", 2 * PACKED)] * 16), 1, SIXTEEN),
    Case(f"packed, settled with {COST}", packed(), settle_in_the_middle("p", COST), 5),
    Case("packed, taken back from the middle", packed(), settle_in_the_middle("p", 0), 5),
    Case("packed, a half expired, taken back", packed(oldest=1.4, newest=0.1), settle_in_the_middle("p", 0), 5),
    Case(f"packed, cost {COST}, settled with 1", packed(), settle_added(f"p*{COST}", 1), 5),
    Case(f"packed, cost {COST}, taken back", packed(), settle_added(f"p*{COST}", 0), 5),
    *cases_of_format("100 buckets", "b100", full_buckets, ENTRIES),
    Case("100 buckets, one has left, 16 requests", buckets(age=1, keys=SIXTEEN), sixteen("b100", ENTRIES), 1, SIXTEEN),
    Case("100 buckets, one has left, 16 limits", buckets(age=1, keys=SIXTEEN),
         alone(*[("b100", ENTRIES)] * 16), 1, SIXTEEN),
    Case("100 buckets, 16 limits, refused", buckets(keys=SIXTEEN), alone(*[("b100", 3000)] * 16), 20, SIXTEEN),
    Case(f"100 buckets, settled with {COST}", buckets(), settle_added("b100", COST), 5),
    Case(f"100 buckets, cost {COST}, settled with 1", buckets(), settle_added(f"b100*{COST}", 1), 5),
    Case(f"100 buckets, cost {COST}, taken back", buckets(), settle_added(f"b100*{COST}", 0), 5),
    Case("a log, a packed log and buckets",
         lambda s: (s.fill(("k0",)), s.fill_packed(("k1",)), s.fill_buckets(("k2",))),
         alone(("l", 9), ("p", 9), ("b100", 9)), 20, SIXTEEN[:3]),
    Case("a key past its time to live", let_expire("yes"), alone(("l", 9))),
    Case("… without lazyfree-lazy-expire", let_expire("no"), alone(("l", 9)), is_target=False),
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
