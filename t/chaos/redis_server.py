"""A Redis of a run: its data survive kill -9."""

import os
import shutil

from processes import Process, wait_until
from redis_client import RedisClient, RedisError

NAME = "chaos"  # of our own connections


class RedisServer(Process):
    # What was answered has been written before: only what is on the disk's way is at risk
    # then, and that is not lost with the process.
    DURABLE = ("--appendonly", "yes", "--appendfsync", "no")

    def __init__(self, directory, port, clock=None, args=()):
        super().__init__(directory)
        self.port = port
        self._clock = clock
        self._args = list(args)

    def start(self, *more):
        self.launch(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.directory,
             "--save", "", "--daemonize", "no", *self.DURABLE, *self._args, *more],
            self._clock.environment if self._clock else None)
        wait_until(self.answers, 20, f"redis-server, see {self.directory}/output")
        return self

    def answers(self):
        try:
            return self.call("PING") == "PONG"
        except (OSError, RedisError):
            return False

    def call(self, *words, timeout=1.0):
        with RedisClient(self.port, timeout) as client:
            client.call("CLIENT", "SETNAME", NAME)
            return client.call(*words)

    def insist(self, *words, seconds=15):
        """Calls until Redis obeys: something else may be wrong with it just now."""
        result = []

        def obeys():
            try:
                result.append(self.call(*words))
            except (OSError, RedisError):
                return False
            return True

        wait_until(obeys, seconds, f"Redis to obey {words}")
        return result[0]

    def info(self, section, name):
        for line in self.call("INFO", section).splitlines():
            if line.startswith(name + ":"):
                return line.partition(":")[2]
        return None

    def nginx_clients(self):
        """How many connections nginx has here. Others who have none of our names: a server that
        moved keys here, and waits whether there are more."""
        lines = self.call("CLIENT", "LIST", "TYPE", "normal").splitlines()
        return sum("name= " in line and "cmd=restore" not in line and "cmd=select" not in line
                   for line in lines)

    def forget_data(self):
        """While it does not run."""
        shutil.rmtree(os.path.join(self.directory, "appendonlydir"), ignore_errors=True)


class Sentinel(RedisServer):
    def __init__(self, directory, port, configuration):
        super().__init__(directory, port)
        self._path = os.path.join(directory, "sentinel.conf")
        with open(self._path, "w") as file:
            file.write(f"port {port}\nbind 127.0.0.1\ndir {directory}\n{configuration}\n")

    def start(self, *_):
        self.launch(["redis-server", self._path, "--sentinel"])
        wait_until(self.answers, 20, "a Sentinel")
        return self
