"""Watches whether the machine gives its processes the time they need.

The kernel tells how long each process has had to wait for a processor; and whoever sleeps for a
moment sees whether that moment was longer. Without this a busy machine would look like a fault
of the module.
"""

import threading
import time

import journal

EVERY = 0.05
WORTH_TELLING = 20_000


def _waited(pid):
    """Microseconds that it was ready to run and did not."""
    try:
        with open(f"/proc/{pid}/schedstat") as file:
            return int(file.read().split()[1]) // 1000
    except (OSError, IndexError):
        return None


def _time_of_day():
    """How far the true time of day is from the monotonic clock: the machine's own clock may be set."""
    while True:
        before, time_of_day, after = journal.now(), time.time_ns() // 1000, journal.now()
        if after - before < 200:
            return time_of_day - before


class Sampler(threading.Thread):
    def __init__(self, log, watched):
        super().__init__(daemon=True)
        self._log, self._watched = log, watched
        self._is_stopping = threading.Event()

    def run(self):
        before, then = {}, journal.now()
        time_of_day = _time_of_day()
        while not self._is_stopping.wait(EVERY):
            now = journal.now()
            waits = {pid: _waited(pid) for pid in self._watched()}
            late = now - then - round(EVERY * 1e6)
            for pid, waited in waits.items():
                if waited is not None and before.get(pid) is not None:
                    self._tell(f"process {pid}", then, now, waited - before[pid])
            self._tell("all", then, now, late)
            offset = _time_of_day()
            if abs(offset - time_of_day) > 1000:
                self._log.event("clock", who="redis", step=offset - time_of_day, begin=then, end=journal.now())
                time_of_day = offset
            before, then = waits, now

    def _tell(self, who, begin, end, microseconds):
        """The kernel adds a wait when it is over, also if it began long before."""
        if microseconds > WORTH_TELLING:
            self._log.event("starved", who=who, begin=min(begin, end - microseconds), end=end, us=microseconds)

    def stop(self):
        self._is_stopping.set()
        self.join()
