"""An nginx of a run."""

import os
import re
import signal
import socket

import limits
from processes import Process, children_of, free_port, wait_until

WORKERS = 2
WITHOUT_OPERATORS = 1  # the number of a server

_CONFIGURATION = """\
{load}
daemon off;
user root;
worker_processes {workers};
pid {dir}/nginx.pid;
error_log {dir}/error.log notice;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    keepalive_requests 100000;
    client_body_temp_path {dir}/body;
    proxy_temp_path {dir}/proxy;
    fastcgi_temp_path {dir}/fastcgi;
    uwsgi_temp_path {dir}/uwsgi;
    scgi_temp_path {dir}/scgi;
    sliding_limit_redis {url} timeout={timeout}ms connect_timeout={connect_timeout}ms;
    sliding_limit_memory {memory};
    sliding_limit_log_level info;
    add_header X-Check
        "$sliding_limit_status,$sliding_limit_store,$sliding_limit_zone,$sliding_limit_time" always;
    server {{
        listen 127.0.0.1:{port};
        listen 127.0.0.1:{http2_port} http2;
        location = /warm {{
            sliding_limit zone=warm max=1000000 window=1s key=$arg_k0;
            empty_gif;
        }}
{for_operators}{locations}    }}
}}
"""

_FOR_OPERATORS = "        location = /limits { sliding_limit_metrics admin; }\n"

# Of these none may be there; the judge knows which are our own doing.
_ALARMING = re.compile(
    r"\[(alert|emerg)\]|exited on signal|open socket|Sanitizer|runtime error|exited with (?:fatal )?code [1-9]")


class Nginx(Process):
    def __init__(self, directory, number, module, clock):
        super().__init__(directory)
        self.number = number
        self.port, self.http2_port = free_port(), free_port()
        self.generation = 0
        self.has_operators = number != WITHOUT_OPERATORS
        self.clock = clock
        self._module = module

    def start(self, url):
        self._url = url
        self._configure()
        self.launch(["nginx", "-p", self.directory, "-c", f"{self.directory}/nginx.conf",
                     "-e", f"{self.directory}/error.log"], self.clock.environment)
        wait_until(self._is_up, 20, f"nginx, see {self.directory}")
        return self

    def _configure(self):
        with open(f"{self.directory}/nginx.conf", "w") as file:
            file.write(_CONFIGURATION.format(
                load=f"load_module {self._module};", dir=self.directory, workers=WORKERS, url=self._url,
                timeout=limits.TIMEOUT // limits.MILLISECOND,
                connect_timeout=limits.CONNECT_TIMEOUT // limits.MILLISECOND,
                memory=limits.MEMORY_FOR_OPERATORS if self.has_operators else limits.MEMORY,
                for_operators=_FOR_OPERATORS if self.has_operators else "", port=self.port, http2_port=self.http2_port,
                locations=limits.nginx_locations(self.generation)))

    def _is_up(self):
        if not self.is_running():
            raise RuntimeError(f"nginx does not start, see {self.directory}/error.log")
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return len(self.workers()) >= WORKERS

    def workers(self):
        return children_of(self.pid)

    def reload(self):
        """With the other limits. Returns when none of the old workers is left."""
        self.generation += 1
        self._configure()
        old = set(self.workers())
        self.signal(signal.SIGHUP)
        wait_until(lambda: not old & set(self.workers()) and len(self.workers()) >= WORKERS,
                   30, "the old workers to leave")

    def alarming_lines(self):
        with open(f"{self.directory}/error.log") as lines:
            return [line.rstrip("\n") for line in lines if _ALARMING.search(line)]


def resources(pid):
    """The private memory of a process in KB, and how many descriptors it has."""
    try:
        with open(f"/proc/{pid}/status") as lines:
            memory = next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
        return {"pid": pid, "memory": memory, "descriptors": len(os.listdir(f"/proc/{pid}/fd"))}
    except (OSError, StopIteration):
        return None
