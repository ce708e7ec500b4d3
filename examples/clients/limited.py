"""Calls an API that has limits, and waits when its headers say so.

    python3 limited.py URL TIMES [PATIENCE]    calls it so often, and prints what came of it
"""

import random
import sys
import time
import urllib.error
import urllib.request


class LimitedClient:
    def __init__(self, patience=60):
        self.patience = patience  # how many seconds one call may wait in all
        self.room_at = 0.0  # before this moment the server would refuse us

    def call(self, request):
        """The answer to a URL or a Request; a refusal if waiting would take too long."""
        end = time.monotonic() + self.patience
        attempt = 0
        while True:
            if self.room_at < end:
                time.sleep(max(0.0, self.room_at - time.monotonic()))
            try:
                answer = urllib.request.urlopen(request)
            except urllib.error.HTTPError as error:
                answer = error
            if answer.status not in (429, 503):
                if answer.headers.get("X-RateLimit-Remaining") == "0":
                    # the next call would be refused
                    self._wait(seconds(answer.headers.get("X-RateLimit-Reset"), 0))
                return answer
            attempt += 1
            self._wait(seconds(answer.headers.get("Retry-After"), 2**attempt))
            if self.room_at >= end:
                return answer

    def _wait(self, delay):
        # a little more, so that clients which were told the same do not come together
        self.room_at = time.monotonic() + delay * random.uniform(1, 1.1)


def seconds(header, otherwise):
    try:
        return float(header)
    except (TypeError, ValueError):
        return otherwise


if __name__ == "__main__":
    client = LimitedClient(*map(float, sys.argv[3:]))
    for _ in range(int(sys.argv[2])):
        answer = client.call(sys.argv[1])
        print(answer.status, answer.headers.get("X-RateLimit-Remaining"), flush=True)
