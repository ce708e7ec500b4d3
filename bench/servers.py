"""Real servers on loopback, each on a port and in a directory of its own, and what they
have used so far."""

import contextlib
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

BENCH = pathlib.Path(__file__).resolve().parent


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def cpu_us(pids):
    """CPU time that these processes have used, with all their threads."""
    total = 0
    for pid in pids:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
    return total / 1000


def output_of(*command):
    """What it prints; if it fails, so do we, with what it has to say about that."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"bench: {command[0]} fails:\n{done.stdout}{done.stderr}")
    return done.stdout


class Server:
    """A process in a directory of its own; both are gone when the block ends."""

    def __enter__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="sliding-limit-bench-"))
        self.port = free_port()
        self.log = self.dir / "output"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, cwd=self.dir)
        try:
            self.wait_until_it_listens()
        except BaseException:
            self.__exit__()
            raise
        return self

    def wait_until_it_listens(self):
        # under valgrind that takes a while
        for _ in range(600):
            if self.process.poll() is not None:
                break
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.05)
        raise SystemExit(f"bench: {self.process.args[0]} does not start:\n{self.log.read_text()}")

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        shutil.rmtree(self.dir)


class Redis(Server):
    """With `under`, a command to run it under."""

    def __init__(self, under=()):
        self.under = under

    def command(self):
        return [*self.under, "redis-server", "--port", str(self.port), "--bind", "127.0.0.1",
                "--save", "", "--dir", str(self.dir)]

    def call(self, *words):
        return output_of("redis-cli", "-p", str(self.port), *words)

    def flush(self):
        self.call("FLUSHALL", "SYNC")

    def cpu_us(self):
        return cpu_us([self.process.pid])

    def calls(self):
        """How often each command has been called, also by scripts."""
        lines = self.call("INFO", "commandstats").splitlines()
        return {name.removeprefix("cmdstat_"): int(rest.split(",")[0].removeprefix("calls="))
                for name, _, rest in (line.partition(":") for line in lines)
                if name.startswith("cmdstat_")}

    def used_memory(self):
        lines = dict(line.split(":", 1) for line in self.call("INFO", "memory").splitlines()
                     if ":" in line)
        return int(lines["used_memory"])


class Nginx(Server):
    """With `under`, a command to run it under, it is a single process. `values` are further ones
    for the @NAMES@ of its configuration."""

    def __init__(self, module, redis, config="nginx.conf", workers=1, under=(), values=None):
        self.module, self.redis, self.config = module, redis, config
        self.workers, self.under, self.values = workers, under, values or {}

    def command(self):
        text = (BENCH / self.config).read_text()
        for name, value in {"MODULE": self.module, "WORKERS": self.workers, "DIR": self.dir,
                            "PORT": self.port, "REDIS_PORT": self.redis.port, "BENCH": BENCH,
                            "MASTER": "off" if self.under else "on", **self.values}.items():
            text = text.replace(f"@{name}@", str(value))

        config = self.dir / "nginx.conf"
        config.write_text(text)
        return [*self.under, "/usr/sbin/nginx", "-c", str(config), "-e", str(self.dir / "error.log")]

    def worker_pids(self):
        """Of the processes that answer requests."""
        if self.under:
            return [self.process.pid]
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in children.read_text().split()]

    def cpu_us(self):
        return cpu_us(self.worker_pids())

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"
