"""Operators: they ban clients, let them go, and give them another max, on any of the servers that
take changes.

Every change is written to the journal: when it was sent, when its answer was there, the answer's
status (0 if there was none) and what it says of the client.
"""

import http.client
import json
import random
import threading

import journal
import limits
import load

OPERATORS = 3
CHANGES_PER_SECOND = 4  # of each operator, at most
PATIENCE = 10           # seconds

# Some rulings are over before anything else is ruled.
LENGTHS = (1, 1, 2, 3600, 3600, 3600)
BANS = ("ban", "ban", "lift", "forget")
OVERRIDES = (1, 2, 3, 9, 12, None)

SECOND = 1_000_000
PATH = "/limits?zone={zone}&key={key}"
HEADERS = {"Content-Type": "application/json"}


class Wish:
    """A change that an operator wants: drawn at random."""

    def __init__(self, dice):
        self.zone = dice.choice(limits.ZONES_WITH_BANS + limits.ZONES_WITH_OVERRIDES)
        _, keys = load.MIX[self.zone]
        self.key = load.steady_key(dice.randrange(keys))
        self.us, self.max = 0, None
        seconds = dice.choice(LENGTHS)
        if self.zone in limits.ZONES_WITH_BANS:
            self.act = dice.choice(BANS)
        else:
            self.max = dice.choice(OVERRIDES)
            self.act = "override" if self.max else "own max"
        if self.act in ("ban", "override"):
            self.us = seconds * SECOND

    @property
    def method(self):
        return "DELETE" if self.act == "forget" else "PUT"

    @property
    def body(self):
        length = f"{self.us // SECOND}s"
        return {"ban": {"ban": length}, "lift": {"ban": None}, "forget": None,
                "override": {"max": self.max, "for": length}, "own max": {"max": None}}[self.act]


class Operator(threading.Thread):
    def __init__(self, log, seed, servers):
        super().__init__(daemon=True)
        self._log, self._servers = log, servers
        self._dice = random.Random(seed)
        self._is_stopping = threading.Event()

    def run(self):
        while not self._is_stopping.wait(self._dice.expovariate(CHANGES_PER_SECOND)):
            self._change(self._dice.choice(self._servers), Wish(self._dice))

    def stop(self):
        self._is_stopping.set()

    def _change(self, nginx, wish):
        begin = journal.now()
        status, told = _ask(nginx.port, wish)
        self._log.event("change", server=nginx.number, zone=wish.zone, key=wish.key, act=wish.act, us=wish.us,
                        max=wish.max, begin=begin, end=journal.now(), status=status, told=told)


def _ask(port, wish):
    """The status of the answer, and where the client stands as it says; 0 if there is none."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        body = json.dumps(wish.body) if wish.body else None
        connection.request(wish.method, PATH.format(zone=wish.zone, key=wish.key), body, HEADERS)
        response = connection.getresponse()
        return response.status, _standing(response)
    except (OSError, http.client.HTTPException):
        return 0, None
    finally:
        connection.close()


def _standing(response):
    """What it says of bans and overrides; otherwise its text, for whoever reads the journal."""
    text = response.read().decode(errors="replace")
    if response.status != 200:
        return text
    standing = json.loads(text)
    return {"ban": standing["ban"] is not None,
            "max": standing["override"] and standing["override"]["max"]}


class Operators:
    """All of them, at work until they are told to stop."""

    def __init__(self, log, seed, servers):
        self._all = [Operator(log, f"{seed} operator {number}", servers) for number in range(OPERATORS)]

    def start(self):
        for operator in self._all:
            operator.start()
        return self

    def stop(self):
        for operator in self._all:
            operator.stop()
        for operator in self._all:
            operator.join()
