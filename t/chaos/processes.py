"""Processes of a run, the ports they listen on and the clocks they read."""

import fcntl
import mmap
import os
import random
import signal
import socket
import struct
import subprocess
import threading
import time

_locks = []
_ports = random.Random()


def free_port():
    """A port that nobody listens on and that no test takes meanwhile: the suites lock theirs
    in the same way (t/lib/SlidingLimit/Servers.pm)."""
    directory = f"/tmp/sliding-limit-ports-{os.getuid()}"
    os.makedirs(directory, exist_ok=True)

    for _ in range(1000):
        port = _ports.randrange(10000, 32000)
        lock = open(os.path.join(directory, str(port)), "w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("0.0.0.0", port))
                probe.listen(1)
        except OSError:
            lock.close()
            continue
        _locks.append(lock)
        return port

    raise RuntimeError("no free port")


def wait_until(condition, seconds, what):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited in vain for {what}")
        time.sleep(0.02)


class Clock:
    """The clock of servers that were started with its environment: see clock_shim.c."""

    def __init__(self, path, shim):
        with open(path, "wb") as file:
            file.write(struct.pack("q", 0))
        self._file = open(path, "r+b")
        self._map = mmap.mmap(self._file.fileno(), 8)
        self.environment = {"LD_PRELOAD": shim, "CHAOS_CLOCK": path}

    def set(self, offset_us):
        self._map[:8] = struct.pack("q", offset_us)


class Process:
    """A program in a process group of its own, so that nothing of it stays behind."""

    _all = []
    _all_lock = threading.Lock()

    def __init__(self, directory):
        os.makedirs(directory, exist_ok=True)
        self.directory = directory
        self._popen = None

    def launch(self, command, environment=None, **pipes):
        with open(os.path.join(self.directory, "output"), "ab") as output:
            pipes = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output, **pipes}
            self._popen = subprocess.Popen(
                command, process_group=0, env={**os.environ, **(environment or {})}, **pipes)
        with Process._all_lock:
            Process._all.append(self)

    @property
    def pid(self):
        return self._popen.pid

    def is_running(self):
        return self._popen is not None and self._popen.poll() is None

    def signal(self, number):
        if self.is_running():
            os.kill(self.pid, number)

    def kill(self):
        self.signal(signal.SIGKILL)
        self._popen.wait()

    def finish(self, seconds=10):
        """Ends it in the ordinary way; False if it had to be killed."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            self._popen.wait(seconds)
            return True
        except subprocess.TimeoutExpired:
            os.killpg(self.pid, signal.SIGKILL)
            self._popen.wait()
            return False

    @staticmethod
    def finish_all():
        for process in reversed(Process._all):
            if process.is_running():
                process.finish(3)


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(child) for child in file.read().split()]
    except OSError:
        return []
