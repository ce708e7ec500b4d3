"""Judges a journal: was every promise of the module kept?

It has nothing in common with the module but its documentation. What is known of a request is when it
was sent and when its answer was there, by one clock for all; it was counted at some moment in
between. So nothing is called a violation that could have been right with some choice of these
moments, and everything else is:

over max   A set of requests, all admitted and counted, whose first was sent less than a window
           before the last was answered: whenever they were counted, all of them lie in one
           window. More than max of them are too many. (For every request as the first one:
           all that were sent from then on and answered before the window was over. There is no
           larger set that begins with it.)
refused    A refusal was decided between its send and its answer. What can have stood in its
           window then: all that was sent before the answer, and was answered later than one
           window before the refusal was sent. To these belong requests of which nobody knows
           whether they were counted (failed open, aborted, unanswered), each for as long as its
           call can have been on its way. Less than max of them is room.
           With buckets a window is one bucket longer, as docs/directives.md says.
costs      What a request takes may become another cost when it has ended. If that is less, the
           rest stands in the window until then; if it is more, the rest is counted then. When
           exactly, nobody knows; but in quiet times a moment after the answer it has happened. So
           the last to be admitted has found of all others at least the lower one of both costs,
           and the true one of those who ended that long before it was sent.
rulings    Operators ban clients and give them another max. rulings.py tells what can have been in
           force between the sending of a request and its answer. If that is a ban and nothing
           else, a request that its store has answered must be refused as banned; if it is no
           ban, it must not. For max, above, an override that can have been in force is as good
           as the limit's own max, and better if nothing else can have been.
           A refusal that nginx remembers was decided earlier: at most the deny cache's time and
           one call before, or at any time while Redis does not answer; but not before the last
           change of the zone that this nginx has made.
changes    Those of operators are answered within seconds: with 200, and what was changed is
           seen then; or with 503, if there is a fault.

What is documented to be otherwise is no violation, but is counted under its name:

lost       Redis loses counts by a failover, a restart without persistence or FLUSHALL, and the
           embedded store if its memory is full. No set for "over max" reaches across such a moment.
clock      Redis's clock set forwards: the same. Set backwards: what was in the window at any
           time that comes again counts once more, until a window after the clock has made up
           for the step.
           What operators have ruled is lost in the same ways; a failover can also bring back what
           was ruled before, but a full memory loses nothing of it. What holds for a time ends
           sooner or later if the clock is set.
reload     A limit that is being changed: either value may be in force from the order until the
           last old worker has gone.
starved    The machine did not give nginx, Redis or the relay the processor in time: what then
           came too late is not the module's fault.
"""

import bisect
import collections

from rulings import Change, Rulings
from tolerance import MILLISECOND, SECOND, at_least, at_most

# Of a wait: nginx looks at its timers only when it has done what came in.
SLACK = 40 * MILLISECOND

# How long a call can be on its way when nothing disturbs it any more.
ON_ITS_WAY = 1 * SECOND

# How long it can take to settle what a request has cost when nothing disturbs it.
TO_SETTLE = 1 * SECOND

# Operators have more patience than clients.
CHANGE_PATIENCE = 3 * SECOND

# nginx starts a new worker, and a client finds that its connection is gone.
AFTERMATH = 500 * MILLISECOND

# After a fault all is to be counted again within a second; what takes longer is told, and is a
# violation if no probe explains it. A probe comes at most a second after the last one has failed, and workers look ten times a
# second whether it has succeeded. The last one to fail may have begun before the fault ended.
PROMISED = 1 * SECOND
PROBE_INTERVAL = 1 * SECOND
LOOK_INTERVAL = 100 * MILLISECOND

# Private memory and descriptors that a worker may have more at the end than at the beginning:
# its pools grow with its connections at first. A hundred bytes that are lost with every request
# are more than that within some minutes.
MEMORY_GROWTH_KB = 3072
DESCRIPTOR_GROWTH = 2

# sliding_limit_deny_cache, where the journal does not say it.
DENY_CACHE = 1 * SECOND

# Nobody has to wait longer for a processor, that is hoped.
LONGEST_STARVED = 10 * SECOND

COUNTED = {"PASSED"}
REFUSED = {"REJECTED", "BANNED"}
UNCERTAIN = {"?", "FAILED_OPEN", "FAILED_CLOSED"}
SHOWN = 20


class Verdict:
    def __init__(self, setup):
        self.topology, self.seed = setup["topology"], setup["seed"]
        self.faults = collections.Counter()
        self.outcomes = collections.Counter()
        self.changes = collections.Counter()
        self.exceptions = collections.Counter()
        self.violations = collections.Counter()
        self.examples = collections.defaultdict(list)
        self.recoveries = []
        self.remarks = []
        self.checked = collections.Counter()

    def violation(self, what, text):
        self.violations[what] += 1
        if len(self.examples[what]) < SHOWN:
            self.examples[what].append(text)


class Spans:
    """Periods of time, those that touch made one."""

    def __init__(self, spans):
        self.spans = []
        for begin, end in sorted(spans):
            if self.spans and begin <= self.spans[-1][1]:
                self.spans[-1][1] = max(self.spans[-1][1], end)
            else:
                self.spans.append([begin, end])
        self._begins = [begin for begin, _ in self.spans]

    def touching(self, begin, end):
        """The last period that has a moment in common with this one, or None."""
        i = bisect.bisect_right(self._begins, end) - 1
        return self.spans[i] if i >= 0 and self.spans[i][1] >= begin else None


class Limits:
    """Which max can have been in force."""

    def __init__(self, events):
        self._changes = collections.defaultdict(list)
        for event in sorted((e for e in events if e["kind"] == "limits"), key=lambda e: e["begin"]):
            self._changes[event["server"]].append(event)

    def possible(self, zone, server, begin, end):
        changes = self._changes[server]
        found = []
        for i, change in enumerate(changes):
            until = changes[i + 1]["end"] if i + 1 < len(changes) else end
            if change["begin"] <= end and until >= begin:
                found.append(change["max"][zone])
        return found


class Counter:
    """What is known of one client in one zone, in one store."""

    def __init__(self, journal, zone, key, name, server=None):
        self.journal = journal
        self.zone, self.key, self.name, self.server = zone, key, name, server
        self.cost, self.true_cost = (journal.zones[zone].get(which, 1) for which in ("cost", "true_cost"))
        self.certain = []   # requests that were counted
        self.possible = []  # (earliest, latest) of all that can have been counted, each as often as it costs
        self.refused = []   # requests

    def may_have(self, request, until):
        """The request can have been counted, at the latest then."""
        lasting = self.cost
        if self.true_cost > self.cost:
            settled_by = self.journal.settled_by(request)
            self.possible += [(request.send, settled_by)] * (self.true_cost - self.cost)
        elif self.true_cost < self.cost and self.journal.is_settled_soon(request):
            # what is given back leaves as if it had been counted a window before that
            lasting = self.true_cost
            gone = request.recv + TO_SETTLE - self.journal.zones[self.zone]["window"]
            self.possible += [(request.send, gone)] * (self.cost - self.true_cost)
        self.possible += [(request.send, until)] * lasting

    def units(self, requests):
        """What the last one of these to be admitted has certainly found of them, with itself, if they
        all lie in one window."""
        if self.true_cost <= self.cost:
            return len(requests) * self.true_cost
        settled = sum(request.recv + TO_SETTLE < requests[-1].send and self.journal.is_settled_soon(request)
                      for request in requests)
        return len(requests) * self.cost + settled * (self.true_cost - self.cost)


class Journal:
    def __init__(self, events, requests):
        self.setup = next(event for event in events if event["kind"] == "setup")
        self._of_kind = collections.defaultdict(list)
        for event in events:
            self._of_kind[event["kind"]].append(event)
        self.requests = requests
        self.zones = self.setup["zones"]
        self.locations = self.setup["locations"]
        self.timeout = self.setup["timeout"]
        self.recovery = (PROBE_INTERVAL + LOOK_INTERVAL + self.setup["connect_timeout"] + self.timeout)
        self.limits = Limits(events)
        self.changes = sorted(map(Change.of, self.of("change")), key=lambda change: change.send)
        self.faults = sorted(self.of("fault"), key=lambda fault: fault["begin"])
        self.disturbed = Spans((fault["begin"], fault["end"] + ON_ITS_WAY // 2) for fault in self.faults)
        self.under_fault = Spans((fault["begin"], fault["end"]) for fault in self.faults)
        self.starved = sorted(self.of("starved"), key=lambda event: event["begin"])
        self._starved_begins = [event["begin"] for event in self.starved]
        self.longest = max(zone["window"] for zone in self.zones.values())
        self._settled_soon = {}
        self._made = collections.defaultdict(list)
        for change in sorted(self.changes, key=lambda change: change.recv):
            if change.is_answered:
                self._made[change.server, change.zone].append(change)
        self.clock_steps = [event for event in self.of("clock") if event["who"] == "redis"]
        self.rulings = Rulings(self.changes, self.until, self.of("lost"), self.clock_steps)
        self.rulings_by_true_clock = Rulings(self.changes, self.until, self.of("lost"), [])
        self.rulings_without_loss = Rulings(self.changes, self.until, [], [])

    def of(self, kind):
        return self._of_kind[kind]

    def lowest_max(self, counter):
        own = min(event["max"][counter.zone] for event in self.of("limits"))
        return min([own, *self.rulings.overrides(counter.zone, counter.key)])

    def possible_maxima(self, counter, request, overridden_since):
        """Which max the client can have had when this was decided; an override also from this
        moment on."""
        history = self.rulings.history("max", counter.zone, counter.key, counter.server)
        overrides = history.possible(overridden_since, request.recv)
        found = [override for override in overrides if override is not None]
        if None in overrides:
            found += self.limits.possible(counter.zone, request.server, request.send, request.recv)
        return found

    def last_change(self, server, zone, before):
        """The last one that this server has made in the zone by then, or None."""
        made = self._made[server, zone]
        i = bisect.bisect_right(made, before, key=lambda change: change.recv)
        return made[i - 1] if i else None

    def starved_for(self, begin, end):
        """Microseconds that processes had to wait for a processor in this time: those three that
        did so longest, as a check has to do with a worker, the relay and Redis."""
        waits = collections.Counter()
        i = bisect.bisect_left(self._starved_begins, begin - LONGEST_STARVED)
        while i < len(self.starved) and self.starved[i]["begin"] <= end:
            event = self.starved[i]
            shared = min(event["end"], end) - max(event["begin"], begin)
            waits[event["who"]] += max(0, min(shared, event["us"]))
            i += 1
        return sum(us for _, us in waits.most_common(3))

    def is_settled_soon(self, request):
        """Whether its store has certainly been told what it has cost, TO_SETTLE after its end, and has
        heeded it. Who passes without an answer settles nothing, and packed logs and buckets with counts
        from the future in them give nothing back."""
        if request not in self._settled_soon:
            end = request.recv + TO_SETTLE
            self._settled_soon[request] = (
                request.end == "answered" and request.status in COUNTED
                and not self.disturbed.touching(request.send, end)
                and not any(event["begin"] <= end and request.send <= event["end"] - event["step"] + 2 * self.longest
                            for event in self.clock_steps if event["step"] < 0)
                and self.starved_for(request.send, end) < TO_SETTLE // 2)
        return self._settled_soon[request]

    def settled_by(self, request):
        """Until when its store can be told what it has cost: when it is back, perhaps."""
        end = request.recv + TO_SETTLE
        disturbance = self.disturbed.touching(request.send, end)
        return (disturbance[1] + self.recovery if disturbance else end) + self.starved_for(request.send, end)

    def until(self, request):
        """Until when the call of a request can be executed of which nobody knows."""
        disturbance = self.disturbed.touching(request.send, request.recv)
        end = max(request.recv, disturbance[1]) if disturbance else request.recv
        return end + ON_ITS_WAY


def judge(events, requests):
    journal = Journal(events, requests)
    verdict = Verdict(journal.setup)

    for fault in journal.faults:
        verdict.faults[fault["name"]] += 1
    for request in requests:
        verdict.outcomes[outcome(request)] += 1

    counters = count(journal)
    for counter in counters:
        judge_admitted(journal, counter, verdict)
        judge_refused(journal, counter, verdict)
    for request in requests:
        judge_answer(journal, request, verdict)
        judge_wait(journal, request, verdict)
        judge_ban(journal, request, verdict)
    for change in journal.changes:
        judge_change(journal, change, verdict)
    judge_recovery(journal, verdict)
    judge_logs(journal, verdict)
    judge_resources(journal, verdict)
    if not requests:
        verdict.violation("nothing to judge", "there are no requests in the journal")
    return verdict


def outcome(request):
    if request.end != "answered":
        return request.end
    if request.status == "?":
        return f"HTTP/2 {request.http}"
    return f"{request.status} ({request.store})" if request.store != "none" else request.status


def describe(request):
    return (f"nginx{request.server} /{request.location} key {request.key} at {request.send}"
            f"…{request.recv}: {request.http} {request.status} {request.store} {request.end}")


# ---- who was counted where


def count(journal):
    counters = {}

    def counter(zone, key, store, server):
        name = (zone, key, store, server if store == "memory" else None)
        if name not in counters:
            counters[name] = Counter(journal, zone, key,
                                     f"{zone}:{key}" + (f" of nginx{server}" if store == "memory" else ""), name[3])
        return counters[name]

    for request in journal.requests:
        keys = request.key.split("|")
        location = journal.locations[request.location]
        for zone, which in location["limits"]:
            own = journal.zones[zone]["store"]
            at_home = counter(zone, keys[which], own, request.server)
            elsewhere = (counter(zone, keys[which], "memory", request.server)
                         if location["on_error"] == "local" else None)
            enter(journal, request, zone, own, at_home, elsewhere)
    return list(counters.values())


def enter(journal, request, zone, own, at_home, elsewhere):
    late = journal.until(request)
    exact = request.recv

    if request.status in COUNTED and request.store == own:
        at_home.certain.append(request)
        at_home.may_have(request, exact)
    elif request.status in COUNTED and request.store == "memory" and elsewhere:
        # its call to Redis may still be on its way
        at_home.may_have(request, late)
        elsewhere.certain.append(request)
        elsewhere.may_have(request, exact)
    elif request.status in REFUSED:
        refused_here = request.zone == zone
        is_for_want_of_room = refused_here and request.status == "REJECTED"
        if request.store == "memory" and elsewhere:
            at_home.may_have(request, late)
            if is_for_want_of_room:
                elsewhere.refused.append(request)
        else:
            # Counted for a while, if limits are asked about one after the other; or in the end,
            # if no answer came and the refusal was remembered.
            if not refused_here or (request.store == "deny_cache" and request.took > 0):
                at_home.may_have(request, late)
            if is_for_want_of_room:
                at_home.refused.append(request)
    else:
        at_home.may_have(request, late)
        if elsewhere:
            elsewhere.may_have(request, late)


# ---- never more than max


def judge_admitted(journal, counter, verdict):
    lowest_max = journal.lowest_max(counter)
    window = at_least(journal.zones[counter.zone]["window"])
    fewest = lowest_max // max(counter.cost, counter.true_cost)
    breaks = breaks_of(journal, counter) if len(counter.certain) > fewest else []
    told_until = 0
    verdict.checked["admitted"] += len(counter.certain)

    for i in range(len(counter.certain) - fewest):
        together = certainly_together(counter.certain, i, window)
        if counter.units(together) <= lowest_max:
            continue
        most = max(max(journal.possible_maxima(counter, request, request.send)) for request in together)
        if counter.units(together) <= most:
            continue

        # A set of which some were counted on one side of a loss and some on the other says
        # nothing; so each side is a set of its own.
        begin, end = together[0].send, max(request.recv for request in together)
        crossed = [event for event in breaks if event["begin"] <= end and event["end"] >= begin]
        if too_many_on_one_side(counter, together, crossed, most):
            verdict.violation("over max", f"{counter.name}: {counter.units(together)} admitted within "
                              f"{(end - begin) / SECOND:.6f} s, max {most}, from {begin} on")
        elif begin >= told_until:
            verdict.exceptions[f"over max: {crossed[0]['why']}"] += 1
            told_until = begin + window


def certainly_together(requests, i, window):
    """All that lie in one window with number i and were sent no earlier."""
    end = requests[i].send + window
    together = []
    while i < len(requests) and requests[i].send < end:
        if requests[i].recv < end:
            together.append(requests[i])
        i += 1
    return together


def breaks_of(journal, counter):
    """Moments at which counts can have been lost."""
    store = journal.zones[counter.zone]["store"] if counter.server is None else "memory"
    found = []
    for event in journal.of("lost"):
        if event["store"] == store and (store == "redis" or event["server"] == counter.server):
            found.append(event)
    if store == "redis":
        found += [{**event, "why": "Redis's clock set forwards"} for event in journal.of("clock")
                  if event["who"] == "redis" and event["step"] > 0]
    return sorted(found, key=lambda event: event["begin"])


def too_many_on_one_side(counter, requests, breaks, most):
    """Whether more than that were certainly counted between two of these moments."""
    edges = Spans((event["begin"], event["end"]) for event in breaks).spans
    begins = [0] + [end for _, end in edges]
    ends = [begin for begin, _ in edges] + [float("inf")]
    return any(counter.units([request for request in requests
                              if request.send >= begin and request.recv <= end]) > most
               for begin, end in zip(begins, ends))


# ---- never refused with room


def judge_refused(journal, counter, verdict):
    zone = journal.zones[counter.zone]
    window = zone["window"]
    if zone["buckets"]:
        window += -(-window // zone["buckets"])
    window = at_most(window)
    earliest = sorted(begin for begin, _ in counter.possible)
    latest = sorted(end for _, end in counter.possible)
    set_back = sorted((event for event in journal.of("clock") if event["who"] == "redis" and event["step"] < 0),
                      key=lambda event: event["begin"]) if counter.server is None else []
    verdict.checked["refused"] += len(counter.refused)

    for request in counter.refused:
        since = begin_of_window(request.send, request.recv, window, set_back)
        # who was answered before that was sent before that
        used = bisect.bisect_right(earliest, request.recv) - bisect.bisect_right(latest, since)
        least = min(journal.possible_maxima(counter, request, decided_since(request, window)))
        if used + counter.cost <= least:
            verdict.violation("refused with room", f"{counter.name}: at most {used} of {least} in the window: "
                              + describe(request))
        elif since < request.send - window:
            verdict.exceptions["refusals judged more mildly: Redis's clock set backwards"] += 1


def decided_since(request, window):
    """What is remembered was decided earlier, and holds until there is room again."""
    return request.send - window if request.store == "deny_cache" else request.send


def begin_of_window(earliest, latest, window, set_back):
    """Of a window that ended at some moment between these. What was counted before that did not
    count any more.

    When the clock is set back, so much of the time before that comes again, and what was
    counted in it, too, if it has not been removed meanwhile.
    """
    begin = earliest - window
    for i, event in enumerate(set_back):
        step = -event["step"]
        if event["begin"] <= latest and earliest <= event["end"] + step + 2 * window:
            begin = min(begin, begin_of_window(event["begin"], event["end"], window + step, set_back[:i]))
    return begin


# ---- every single answer


def judge_answer(journal, request, verdict):
    on_error = journal.locations[request.location]["on_error"]
    if request.end == "aborted":
        return
    if request.end == "unanswered":
        if not is_excused(journal, request):
            verdict.violation("unanswered", describe(request))
        return
    if request.status == "?":  # HTTP/2
        if request.http not in (200, 429) and not (request.http == 503 and on_error == "deny"):
            verdict.violation("wrong status", describe(request))
        return
    expected = {"PASSED": 200, "FAILED_OPEN": 200, "REJECTED": 429, "BANNED": 429,
                "FAILED_CLOSED": 503}.get(request.status)
    if request.http >= 500 and not (request.http == 503 and request.status == "FAILED_CLOSED"):
        verdict.violation("5xx", describe(request))
    elif request.http != expected:
        verdict.violation("wrong status", describe(request))
    elif (request.status == "FAILED_CLOSED") != (on_error == "deny") and request.status.startswith("FAILED"):
        if on_error != "local":
            verdict.violation("wrong on_error", describe(request))


def is_excused(journal, request):
    """Its worker was killed; or the old worker closed a connection that was idle when it looked."""
    killed = any(event["server"] == request.server and request.send - AFTERMATH <= event["at"] <= request.recv
                 for event in journal.of("worker_killed"))
    reloaded = any(event["server"] == request.server and event["begin"] <= request.recv
                   and event["end"] + AFTERMATH >= request.send for event in journal.of("limits"))
    return killed or reloaded


def judge_wait(journal, request, verdict):
    excess = request.took - journal.timeout - SLACK
    if excess <= 0:
        return
    if journal.starved_for(request.send, request.recv) >= excess:
        verdict.exceptions["waited too long: starved"] += 1
    else:
        verdict.violation("late", f"waited {request.took / SECOND:.6f} s: {describe(request)}")


# ---- what operators have ruled


def judge_ban(journal, request, verdict):
    keys = request.key.split("|")
    for zone, which in journal.locations[request.location]["limits"]:
        store = journal.zones[zone]["store"]
        client = (zone, keys[which], request.server if store == "memory" else None)
        if request.status == "BANNED" and request.zone == zone:
            judge_banned(journal, request, client, verdict)
        elif request.store == store and (request.status == "PASSED"
                                         or (request.status == "REJECTED" and request.zone == zone)):
            judge_not_banned(journal, request, client, verdict)


def judge_not_banned(journal, request, client, verdict):
    def can_be_right(rulings):
        return None in rulings.history("ban", *client).possible(request.send, request.recv)

    if not can_be_right(journal.rulings):
        verdict.violation("not banned", describe(request))
    elif not can_be_right(journal.rulings_without_loss):
        why = what_was_lost(journal, client, request, can_be_right) or "Redis's clock set forwards"
        verdict.exceptions[f"not banned: {why}"] += 1


def judge_banned(journal, request, client, verdict):
    since = banned_since(journal, request, client)

    def can_be_right(rulings):
        return True in rulings.history("ban", *client).possible(since, request.recv)

    verdict.checked["banned"] += 1
    if can_be_right(journal.rulings_without_loss):
        return
    if can_be_right(journal.rulings):
        why = what_was_lost(journal, client, request, can_be_right) or "Redis's clock set backwards"
        verdict.exceptions[f"banned: {why}"] += 1
    elif request.store == "deny_cache" and is_starved(journal, request, since):
        verdict.exceptions["banned for too long: starved"] += 1
    else:
        verdict.violation("banned without a ban", describe(request))


def what_was_lost(journal, client, request, can_be_right):
    """What explains this without a word about clocks, or None."""
    if not can_be_right(journal.rulings_by_true_clock):
        return None
    losses = [event for event in journal.rulings.losses_of(client[2]) if event["begin"] <= request.recv]
    return max(losses, key=lambda event: event["begin"])["why"]


def banned_since(journal, request, client):
    """When this was decided, at the earliest."""
    if request.store != "deny_cache":
        return request.send
    remembered = journal.locations[request.location].get("deny_cache", DENY_CACHE)
    since = request.send - remembered - journal.timeout - SLACK
    if journal.under_fault.touching(since - journal.recovery, request.recv):
        since = 0
    change = journal.last_change(request.server, request.zone, request.send)
    if change is None:
        return since
    # It was decided after that change was made. What held then still holds when the change is
    # answered, unless something else was changed meanwhile.
    is_alone = not journal.rulings.is_changed_by_others(change, *client[:2])
    return max(since, change.recv if is_alone else change.send)


def judge_change(journal, change, verdict):
    verdict.changes[f"{change.act}, {change.status or 'unanswered'}"] += 1
    if change.status == 0:
        if not is_excused(journal, change):
            verdict.violation("change unanswered", str(change))
    elif change.status == 503:
        judge_failed_change(journal, change, verdict)
    elif change.status != 200:
        verdict.violation("change answered wrongly", str(change))
    elif not change.is_told_rightly():
        verdict.violation("change not made", str(change))
    judge_wait_of_change(journal, change, verdict)


def judge_failed_change(journal, change, verdict):
    """Only a fault of Redis is a reason, and for a moment after it."""
    since = change.send - journal.recovery
    if journal.zones[change.zone]["store"] == "redis":
        if journal.under_fault.touching(since, change.recv):
            return
        if is_starved(journal, change, since):
            verdict.exceptions["change failed: starved"] += 1
            return
    verdict.violation("change failed", str(change))


def judge_wait_of_change(journal, change, verdict):
    excess = change.recv - change.send - CHANGE_PATIENCE
    if excess <= 0 or change.status == 0:
        return
    if journal.starved_for(change.send, change.recv) >= excess:
        verdict.exceptions["change answered too late: starved"] += 1
    else:
        verdict.violation("change answered too late", str(change))


# ---- counted again


def is_uncounted(journal, request):
    """Its own store did not decide."""
    if request.end != "answered" or request.status == "?":
        return False
    store = journal.zones[journal.locations[request.location]["limits"][0][0]]["store"]
    return request.status.startswith("FAILED") or (store == "redis" and request.store == "memory")


def judge_recovery(journal, verdict):
    """In every quiet time: from a moment after the last fault on all is counted, on every server."""
    if not journal.requests:
        return
    spans = journal.under_fault.spans
    begins = [journal.requests[0].send - journal.recovery] + [end for _, end in spans]
    ends = [begin for begin, _ in spans] + [journal.requests[-1].recv + 1]
    sends = [request.send for request in journal.requests]

    for begin, end in zip(begins, ends):
        slowest = 0
        counted = collections.Counter()
        for request in journal.requests[bisect.bisect_left(sends, begin):bisect.bisect_left(sends, end)]:
            if request.recv > end:
                continue
            if not is_uncounted(journal, request):
                counted[request.server] += request.send > begin + journal.recovery and request.store == "redis"
                continue
            after = request.send - begin
            if after > PROMISED and is_starved(journal, request, begin):
                verdict.exceptions["not counted within a second: starved"] += 1
                continue
            slowest = max(slowest, after)
            if after > journal.recovery:
                verdict.violation("not counted again", f"{after / SECOND:.3f} s after the last fault: "
                                  + describe(request))
        verdict.recoveries.append(slowest)
        if end - begin > journal.recovery + SECOND:
            had_no_time = journal.starved_for(begin, end) >= end - begin - journal.recovery
            for server in range(journal.setup["servers"]):
                if not counted[server] and had_no_time:
                    verdict.exceptions["nothing counted: starved"] += 1
                elif not counted[server]:
                    verdict.violation("not counted again", f"nothing was counted by nginx{server} "
                                      f"between {begin} and {end}")


def is_starved(journal, request, since):
    """Whether it, or those before it that made Redis look down, had to wait for a processor."""
    begin = max(since, request.send - journal.recovery)
    return journal.starved_for(begin, request.recv) >= journal.timeout // 2


# ---- what is left behind


def judge_logs(journal, verdict):
    killed = {event["pid"] for event in journal.of("worker_killed")}
    for event in journal.of("log"):
        if "exited on signal 9" in event["line"] and any(f" {pid} exited" in event["line"] for pid in killed):
            continue
        verdict.violation("alarming log line", f"nginx{event['server']}: {event['line']}")
    for event in journal.of("trouble"):
        verdict.violation("trouble", event["text"])
    verdict.remarks += [event["text"] for event in journal.of("remark")]


def judge_resources(journal, verdict):
    """Those who lived all the time have not grown; those who are new are like those at the beginning."""
    before = [event for event in journal.of("resources") if event["when"] == "before"]
    after = [event for event in journal.of("resources") if event["when"] == "after"]

    for event in after:
        peers = [other for other in before if other["role"] == event["role"] and other["server"] == event["server"]]
        itself = [other for other in peers if other["pid"] == event["pid"]]
        for what, growth in (("memory", MEMORY_GROWTH_KB), ("descriptors", DESCRIPTOR_GROWTH)):
            most = max(other[what] for other in itself or peers)
            verdict.checked["processes"] += 1
            if event[what] > most + growth:
                verdict.violation(f"{what} grow", f"nginx{event['server']} {event['role']} {event['pid']}: "
                                  f"{most} before, {event[what]} after")
    for event in journal.of("connections"):
        if not event["least"] <= event["found"] <= event["most"]:
            verdict.violation("connections", f"nginx has {event['found']} connections to redis{event['server']}, "
                              f"not {event['least']} to {event['most']}")
