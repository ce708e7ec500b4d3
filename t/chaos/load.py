"""load.py JOURNAL SEED PORT,HTTP2-PORT...: clients of all servers, until they are told to stop.

Two kinds of clients take turns: some ask for the same few keys all the time, so that these are
at or over their limits; others come in a burst of a little more than a limit allows, over all
servers at once, with a key that has been quiet for longer than its window, so that exactly the
limit must pass. Every request is written to the journal.

Orders come one per line, as "WHAT NUMBER", and hold until another number comes:
  abort P     so many of all requests are given up by their client while they are under way
  http2 N     so many connections send requests over HTTP/2 and reset most of them
  flood N     server N gets thousands of requests with new keys; -1: none does
  stop 0      ends it
"""

import os
import random
import selectors
import socket
import sys

import http2
import journal
import limits

RATE = 480              # requests per second of clients that come all the time
BURSTS = 18             # per second
IDLE_CONNECTIONS = 40   # to each server, at most
PATIENCE = 10_000_000
FLOOD_BATCH = 80
FLOOD_EVERY = 15_000
TICK = 0.004

# How often each location is asked by those who come all the time, and how many keys they have.
MIX = {"half": (3, 3), "one": (4, 3), "three": (4, 3), "pair": (3, 3), "asked": (4, 3),
       "local": (3, 2), "closed": (3, 2), "cross": (3, 4), "embedded": (4, 2),
       "bans": (2, 2), "bans_asked": (2, 1), "bans_embedded": (2, 1),
       "overrides": (2, 1), "overrides_packed": (2, 1), "overrides_in_buckets": (2, 1), "overrides_embedded": (3, 1),
       "settled": (2, 1), "settled_packed": (2, 1), "settled_in_buckets": (2, 1),
       "debts": (2, 1), "debts_packed": (2, 1), "debts_in_buckets": (2, 1), "debts_embedded": (2, 1)}

# Nobody comes near the max of the others.
BURSTING = [location for location in MIX if location not in limits.ZONES_WITH_BANS]


class Connection:
    """HTTP/1.1, one request at a time or many in a row."""

    def __init__(self, load, server, port):
        self.load, self.server = load, server
        self.socket = socket.create_connection(("127.0.0.1", port), 5)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.waiting = []  # (location, key, send) in the order of requests
        self.buffer = b""
        self.abort_at = None
        load.selector.register(self.socket, selectors.EVENT_READ, self)

    def ask(self, requests):
        text = "".join(f"GET /{location}?{_query(key)} HTTP/1.1\r\nHost: chaos\r\n\r\n"
                       for location, key in requests)
        send = journal.now()
        self.waiting += [(location, key, send) for location, key in requests]
        try:
            self.socket.send(text.encode())
        except OSError:
            self.end("unanswered")
            return False
        return True

    def ready(self):
        try:
            data = self.socket.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.end("unanswered")
            return
        self.buffer += data
        while self.waiting and self._take_answer():
            pass
        if not self.waiting and self.abort_at is None:
            self.load.is_idle(self)

    def _take_answer(self):
        head, mark, rest = self.buffer.partition(b"\r\n\r\n")
        if not mark:
            return False
        lines = head.decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
        length = int(headers.get("content-length", 0))
        if len(rest) < length:
            return False
        self.buffer = rest[length:]
        location, key, send = self.waiting.pop(0)
        status, store, zone, took = headers.get("x-check", ",,,").split(",")
        self.load.journal.request((
            self.server, location, key, send, journal.now(), lines[0].split(" ")[1],
            status.upper() or "-", store or "-", zone or "-", round(float(took or 0) * 1e6), "answered"))
        if headers.get("connection") == "close":
            self.end("unanswered")
            return False
        return True

    def end(self, how):
        recv = journal.now()
        for location, key, send in self.waiting:
            self.load.journal.request((self.server, location, key, send, recv, 0, "?", "-", "-", 0, how))
        self.waiting = []
        self.load.drop(self)


def steady_key(number):
    return f"s{number}"


def _query(key):
    return "&".join(f"k{i}={part}" for i, part in enumerate(key.split("|")))


class Load:
    def __init__(self, path, seed, ports):
        self.journal = journal.Writer(path)
        self.selector = selectors.DefaultSelector()
        self.dice = random.Random(seed)
        self.ports = ports
        self.idle = [[] for _ in ports]
        self.all = set()
        self.orders = {"abort": 0, "http2": 0, "flood": -1}
        self.http2 = []
        self.aborting = []
        self.flood = None
        self.flooded = self.flooded_at = 0
        self.steady = [(location, keys) for location, (weight, keys) in MIX.items() for _ in range(weight)]
        self.quiet_since = {}  # (location, key) of bursts -> when it was used last
        self.is_stopping = False
        self.selector.register(sys.stdin, selectors.EVENT_READ, self)

    def run(self):
        begin = last = journal.now()
        next_steady, next_burst = begin, begin
        while not self.is_stopping or self.is_busy():
            for key, _ in self.selector.select(TICK):
                key.data.ready()
            now = journal.now()
            # what was missed while this process had to wait is not made up for
            next_steady, next_burst = max(next_steady, now - 50_000), max(next_burst, now - 50_000)
            while not self.is_stopping and next_steady <= now:
                self.send_steady()
                next_steady += self.dice.expovariate(RATE) * 1e6
            while not self.is_stopping and next_burst <= now:
                self.send_burst()
                next_burst += self.dice.expovariate(BURSTS) * 1e6
            self.keep_flooding()
            self.give_up(journal.now())
            if now - last > 100_000:
                last = now
                self.look_after_connections(now)
        self.journal.close()

    def is_busy(self):
        return any(connection.waiting for connection in self.all)

    # ---- orders

    def ready(self):
        for line in os.read(sys.stdin.fileno(), 4096).decode().splitlines() or ["stop 0"]:
            what, number = line.split()
            self.orders[what] = float(number)
        if "stop" in self.orders:
            self.is_stopping = True
            self.selector.unregister(sys.stdin)
            self.orders = {"abort": 0, "http2": 0, "flood": -1}
        while len(self.http2) > self.orders["http2"]:
            self.http2.pop().close()
        while len(self.http2) < self.orders["http2"]:
            server = self.dice.randrange(len(self.ports))
            self.http2.append(http2.Connection(self, server, self.ports[server][1]))

    # ---- requests

    def send_steady(self):
        location, keys = self.dice.choice(self.steady)
        server = self.dice.randrange(len(self.ports))
        self.ask(server, location, self.key(location, steady_key(self.dice.randrange(keys))))

    def key(self, location, name):
        if len(limits.LOCATIONS[location]["limits"]) == 2 and location == "cross":
            return f"{name}|c{self.dice.randrange(2)}"
        return name

    def send_burst(self):
        location = self.dice.choice(BURSTING)
        zones = [zone for zone, _ in limits.LOCATIONS[location]["limits"]]
        window = max(limits.ZONES[zone]["window"] for zone in zones) * limits.MILLISECOND
        now = journal.now()
        name = next((f"b{i}" for i in range(100)
                     if now - self.quiet_since.get((location, f"b{i}"), 0) > 1.5 * window), None)
        if name is None:
            return
        self.quiet_since[(location, name)] = now
        count = max(max(limits.ZONES[zone]["max"]) for zone in zones) + 2
        key = self.key(location, name)
        servers = range(len(self.ports))
        if limits.ZONES[zones[0]].get("store") == "memory":  # each server counts for itself
            servers = [self.dice.randrange(len(self.ports))]
        for _ in range(count):
            self.ask(self.dice.choice(servers), location, key)

    def ask(self, server, location, key):
        if self.http2 and self.dice.random() < 0.3:
            self.dice.choice(self.http2).ask(location, key, _query(key), self.dice.random() < 0.7)
            return
        idle = self.idle[server]
        # any of them, so that all workers have to do
        connection = idle.pop(self.dice.randrange(len(idle))) if idle else self.connect(server)
        if connection and connection.ask([(location, key)]) and self.dice.random() < self.orders["abort"]:
            connection.abort_at = journal.now() + self.dice.choice((0, 0, 1000, 5000, 20000))
            self.aborting.append(connection)

    def keep_flooding(self):
        server = int(self.orders["flood"])
        if server < 0 or (self.flood and self.flood.server != server):
            if self.flood and not self.flood.waiting:
                self.is_idle(self.flood)
                self.flood = None
            return
        if self.flood is None:
            self.flood = self.connect(server)
        if self.flood and not self.flood.waiting and journal.now() - self.flooded_at > FLOOD_EVERY:
            self.flooded_at = journal.now()
            self.flooded += FLOOD_BATCH
            if not self.flood.ask([("flood", f"f{self.flooded - i}") for i in range(FLOOD_BATCH)]):
                self.flood = None

    def give_up(self, now):
        for connection in [one for one in self.aborting if one.abort_at <= now]:
            self.aborting.remove(connection)
            connection.end("aborted")

    # ---- connections

    def connect(self, server):
        try:
            connection = Connection(self, server, self.ports[server][0])
        except OSError:
            return None  # nobody was asked anything
        self.all.add(connection)
        return connection

    def is_idle(self, connection):
        if connection is self.flood or connection not in self.all:
            return
        if len(self.idle[connection.server]) >= IDLE_CONNECTIONS or self.is_stopping:
            self.drop(connection)
        elif connection not in self.idle[connection.server]:
            self.idle[connection.server].append(connection)

    def drop(self, connection):
        if connection in self.all:
            self.all.discard(connection)
            self.selector.unregister(connection.socket)
            connection.socket.close()
            if connection in self.idle[connection.server]:
                self.idle[connection.server].remove(connection)
            if connection is self.flood:
                self.flood = None

    def look_after_connections(self, now):
        for connection in list(self.all):
            if connection.waiting and now - connection.waiting[0][2] > PATIENCE:
                connection.end("unanswered")
        for i, connection in enumerate(self.http2):
            if connection.is_closed:
                server = self.dice.randrange(len(self.ports))
                self.http2[i] = http2.Connection(self, server, self.ports[server][1])


if __name__ == "__main__":
    Load(sys.argv[1], sys.argv[2], [tuple(map(int, pair.split(","))) for pair in sys.argv[3:]]).run()
