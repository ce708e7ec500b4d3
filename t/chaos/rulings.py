"""What operators have ruled about clients: what can have been in force at some moment?

A change that was answered with 200 was made at some moment between its sending and its answer. One
without such an answer was made at some moment for as long as its call can have been on its way, or
not at all. A change is certainly out of force once another was made for certain that began when
the first was certainly over; until then both are possible, as is anything between them.

Bans and overrides are ruled independently of each other: each has a history of its own, of values
(True, or the max) that hold for a time. None stands for "nothing is ruled".

What a store loses:

  FLUSHALL and restarts   None is possible from then on.
  failovers               The new primary may not have heard of what was ruled last, or of nothing
                          at all: everything that ever was is possible, until something is ruled
                          after the failover.
  a full memory           Nothing: rulings are never forgotten for want of memory.

Redis's clock, if it is set, makes the time for which something holds longer or shorter.
"""

import bisect
import collections
import functools

from tolerance import at_least, at_most

FOREVER = float("inf")

# Which acts say something about bans, and which about the max.
ACTS = {"ban": {"ban", "lift", "forget"}, "max": {"override", "own max"}}

_Change = collections.namedtuple("_Change", "server zone key act us max send recv status told")


class Change(_Change):
    """What an operator has sent: `us` and `max` as far as the act has them."""

    @staticmethod
    def of(event):
        return Change(*(event[name] for name in ("server", "zone", "key", "act", "us", "max", "begin", "end",
                                                 "status", "told")))

    @property
    def is_answered(self):
        return self.status == 200

    def value(self):
        return {"ban": True, "override": self.max}.get(self.act)

    def is_told_rightly(self):
        """Whether the answer shows what has just been ruled."""
        if self.act in ACTS["ban"]:
            return self.told["ban"] == (self.act == "ban")
        return self.told["max"] == self.value()


class Clock:
    """Steps of the clock that a store goes by."""

    def __init__(self, steps):
        self._steps = steps

    def set_forwards(self, begin, end):
        return sum(max(0, event["step"]) for event in self._between(begin, end))

    def set_backwards(self, begin, end):
        return sum(max(0, -event["step"]) for event in self._between(begin, end))

    def _between(self, begin, end):
        return [event for event in self._steps if event["begin"] <= end and event["end"] >= begin]


# Something that was ruled at some moment between these.
_Ruled = collections.namedtuple("_Ruled", "earliest latest is_certain value us")


class History:
    """What was ruled about one client, in one respect."""

    def __init__(self, ruled, failovers, clock):
        self._ruled = sorted(ruled, key=lambda one: one.earliest)
        self._earliest = [one.earliest for one in self._ruled]
        self._latest_so_far = []
        for one in self._ruled:
            self._latest_so_far.append(max([one.latest, *self._latest_so_far[-1:]]))
        self._failovers = failovers
        self._clock = clock
        self.possible = functools.lru_cache(maxsize=1 << 16)(self._possible)

    def _possible(self, begin, end):
        """All values that can have been in force at some moment of this time."""
        settled = self._settled(begin, end)
        values = set() if settled else {None}
        i = bisect.bisect_right(self._earliest, end) - 1
        while i >= 0 and not (settled and self._latest_so_far[i] <= settled.earliest):
            one = self._ruled[i]
            if one is settled or not settled or one.latest > settled.earliest:
                values |= self._values_of(one, begin, end)
            i -= 1
        return frozenset(values)

    def _settled(self, begin, end):
        """The last one that was certainly ruled by then, if it cannot have been lost."""
        i = bisect.bisect_right(self._earliest, begin) - 1
        while i >= 0:
            one = self._ruled[i]
            if one.is_certain and one.latest <= begin:
                return one if not self._is_failover_between(one.earliest, end) else None
            i -= 1
        return None

    def _is_failover_between(self, begin, end):
        return any(event["begin"] <= end and event["end"] >= begin for event in self._failovers)

    def _values_of(self, one, begin, end):
        if one.value is None:
            return {None}
        values = set()
        if begin <= one.latest + at_most(one.us) + self._clock.set_backwards(one.earliest, begin):
            values.add(one.value)
        if end >= one.earliest + at_least(one.us) - self._clock.set_forwards(one.earliest, end):
            values.add(None)
        return values


class Rulings:
    """Of all clients. `until` tells how long the call of a change without an answer can be on its
    way; `losses` and `steps` are what stores have lost and how Redis's clock was set."""

    def __init__(self, changes, until, losses, steps):
        self._until = until
        self._losses, self._steps = losses, steps
        self._histories = {}
        self._nothing = History([], [], Clock([]))
        changes_of = collections.defaultdict(list)
        for change in changes:
            for respect, acts in ACTS.items():
                if change.act in acts:
                    changes_of[respect, change.zone, change.key].append(change)
        self._changes_of = changes_of

    def history(self, respect, zone, key, server):
        """`server` has the number of the nginx if that counts, and is None if Redis does."""
        changes = self._changes_of.get((respect, zone, key))
        if not changes:
            return self._nothing
        name = (respect, zone, key, server)
        if name not in self._histories:
            here = [change for change in changes if server in (None, change.server)]
            self._histories[name] = self._make(here, server)
        return self._histories[name]

    def overrides(self, zone, key):
        """Each max that the client was ever given."""
        return [change.max for change in self._changes_of.get(("max", zone, key), ()) if change.max]

    def is_changed_by_others(self, change, zone, key):
        """Whether something else can have been ruled about the client's ban while this was."""
        return any(other is not change and other.send <= change.recv and self._latest(other) >= change.send
                   for other in self._changes_of.get(("ban", zone, key), ()))

    def _make(self, changes, server):
        losses = self.losses_of(server)
        failovers = [event for event in losses if event["why"] == "failover"]
        ruled = [self._ruled(change) for change in changes]
        ruled += [_Ruled(event["begin"], event["end"], False, None, FOREVER)
                  for event in losses if event not in failovers]
        return History(ruled, failovers, Clock(self._steps if server is None else []))

    def _ruled(self, change):
        return _Ruled(change.send, self._latest(change), change.is_answered, change.value(), change.us)

    def _latest(self, change):
        return change.recv if change.is_answered else self._until(change)

    def losses_of(self, server):
        if server is None:
            return [event for event in self._losses if event["store"] == "redis"]
        return [event for event in self._losses
                if event["store"] == "memory" and event["server"] == server and event["why"] != "memory full"]
