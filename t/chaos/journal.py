"""The journal of a run: what every request met with, and what was done meanwhile.

A journal is a directory of files *.journal, or one such file; the order of lines does not
matter. All times are microseconds of CLOCK_MONOTONIC, which all processes share and nobody
sets. A line is either an event, a JSON object with "kind", or a request, fields with tabs
between them, in the order of REQUEST.
"""

import collections
import glob
import json
import os
import threading
import time

REQUEST = (
    "server",    # the number of the nginx that was asked
    "location",  # its limits are in the event "setup"
    "key",       # or several, with "|" between them
    "send",      # before the first byte was sent
    "recv",      # after the last byte came, or when there was nothing more to wait for
    "http",      # status of the answer, 0 if there was none
    "status",    # $sliding_limit_status, "?" if that is not known
    "store",     # $sliding_limit_store
    "zone",      # $sliding_limit_zone
    "took",      # $sliding_limit_time in microseconds
    "end",       # "answered", "aborted" by the client, or "unanswered"
)

Request = collections.namedtuple("Request", REQUEST)
_NUMBERS = (0, 3, 4, 5, 9)


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000


class Writer:
    def __init__(self, path):
        self._file = open(path, "a", buffering=1 << 16)
        self._lock = threading.Lock()

    def request(self, request):
        self._file.write("\t".join(map(str, request)) + "\n")

    def event(self, kind, **fields):
        line = json.dumps({"kind": kind, **fields}) + "\n"
        with self._lock:
            self._file.write(line)
            self._file.flush()

    def close(self):
        self._file.close()


def read(path):
    """The events and the requests of a journal, each in the order of time."""
    files = sorted(glob.glob(os.path.join(path, "*.journal"))) if os.path.isdir(path) else [path]
    if not files:
        raise FileNotFoundError(f"there is no journal in {path}")

    events, requests = [], []
    for name in files:
        with open(name) as lines:
            for line in lines:
                if line.startswith("{"):
                    events.append(json.loads(line))
                else:
                    requests.append(_request(line))

    requests.sort(key=lambda request: request.send)
    return events, requests


def _request(line):
    fields = line.rstrip("\n").split("\t")
    if len(fields) != len(REQUEST):
        raise ValueError(f"no line of a journal: {line!r}")
    for i in _NUMBERS:
        fields[i] = int(fields[i])
    return Request(*fields)
