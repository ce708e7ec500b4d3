"""The Redis servers of a run: a single one, one with Sentinels, or a cluster.

In front of every server that nginx knows of stands the relay; servers of the last two
kinds announce its port as theirs.
"""

import json
import os
import subprocess
import sys
import threading

import journal
from processes import Clock, Process, free_port, wait_until
from redis_client import RedisError
from redis_server import RedisServer, Sentinel

SLOTS = 16384


class Relay(Process):
    def start(self, pairs):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "relay.py")
        self.launch([sys.executable, script, *(f"{port}:{target}" for port, target in pairs)],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._lock = threading.Lock()
        return self

    def order(self, **order):
        """Returns when it is in force."""
        with self._lock:
            self._popen.stdin.write(json.dumps(order).encode() + b"\n")
            self._popen.stdin.flush()
            self._popen.stdout.readline()


class Topology:
    """What all of them have.

    servers     all that can have data
    relay_port  of a server: where nginx comes to it
    """

    def __init__(self, directory, shim, log):
        self.directory = directory
        self.log = log
        self.clock = Clock(os.path.join(directory, "redis.clock"), shim)
        self.servers = []
        self.relay_port = {}
        self.relay = Relay(os.path.join(directory, "relay"))

    def add_server(self, *args, relay_port=None):
        port = free_port()
        server = RedisServer(os.path.join(self.directory, f"redis{len(self.servers)}"), port, self.clock, args)
        self.servers.append(server)
        self.relay_port[server] = relay_port or free_port()
        return server

    def start_relay(self):
        self.relay.start([(self.relay_port[server], server.port) for server in self.servers])

    def server_at(self, port):
        return next(server for server in self.servers if port in (server.port, self.relay_port[server]))

    def primaries(self):
        """Those that count, in an order that stays."""
        raise NotImplementedError

    def is_well(self, server):
        """Whether it counts, or would do so if it were asked."""
        return server.answers()

    def lost(self, since, why):
        """Counts that Redis had before may be missing from now on, but not those from now on."""
        self.log.event("lost", store="redis", why=why, begin=since, end=journal.now())


class Single(Topology):
    name = "single"

    def start(self):
        self.add_server().start()
        self.start_relay()
        return self

    def urls(self, count):
        """One for each nginx; the last one does without the relay."""
        server = self.servers[0]
        ports = [self.relay_port[server]] * (count - 1) + [server.port]
        return [f"redis://127.0.0.1:{port}" for port in ports]

    def primaries(self):
        return self.servers

    def stray_clients(self):
        return 0


class Sentinels(Topology):
    name = "sentinel"
    primary_name = "chaos"
    down_after_ms = 3000

    def start(self):
        relay_ports = [free_port() for _ in range(3)]
        for port in relay_ports:
            self.add_server("--replica-announce-ip", "127.0.0.1", "--replica-announce-port", str(port),
                            "--repl-diskless-sync-delay", "0", relay_port=port).start()
        self.start_relay()
        for server in self.servers[1:]:
            server.insist("REPLICAOF", "127.0.0.1", relay_ports[0])
        wait_until(lambda: self.servers[0].info("replication", "connected_slaves") == "2", 30, "replicas")

        self.sentinels = []
        for i in range(3):
            lines = (f"sentinel monitor {self.primary_name} 127.0.0.1 {relay_ports[0]} 2",
                     f"sentinel down-after-milliseconds {self.primary_name} {self.down_after_ms}",
                     f"sentinel failover-timeout {self.primary_name} 5000",
                     f"sentinel parallel-syncs {self.primary_name} 2")
            directory = os.path.join(self.directory, f"sentinel{i}")
            os.makedirs(directory)
            self.sentinels.append(Sentinel(directory, free_port(), "\n".join(lines)).start())
        wait_until(self._know_each_other, 60, "the Sentinels to know each other")
        return self

    def _know_each_other(self):
        for sentinel in self.sentinels:
            words = sentinel.call("SENTINEL", "MASTER", self.primary_name)
            state = dict(zip(words[::2], words[1::2]))
            if state["num-slaves"] != "2" or state["num-other-sentinels"] != "2":
                return False
        return True

    def urls(self, count):
        addresses = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in self.sentinels)
        return [f"sentinel://{addresses}/{self.primary_name}"] * count

    def named(self):
        """The server that each Sentinel names."""
        return [self.server_at(int(sentinel.call(
            "SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.primary_name)[1])) for sentinel in self.sentinels]

    def primaries(self):
        return [self.named()[0]]

    def stray_clients(self):
        """Connections of nginx to servers that are not to be asked."""
        primary = self.primaries()[0]
        return sum(server.nginx_clients() for server in self.servers
                   if server is not primary and server.is_running())

    def wait_until_whole(self):
        """Until every Sentinel knows two replicas that could take over; they elect nobody before."""
        def is_whole():
            try:
                return all(self._good_replicas(sentinel) == 2 for sentinel in self.sentinels)
            except (OSError, RedisError):
                return False
        wait_until(is_whole, 60, "replicas that could take over")

    def _good_replicas(self, sentinel):
        states = [dict(zip(words[::2], words[1::2]))
                  for words in sentinel.call("SENTINEL", "REPLICAS", self.primary_name)]
        return sum(state["flags"] == "slave" and state["master-link-status"] == "ok" for state in states)

    def wait_for_election(self, old):
        """Until all Sentinels name another primary that says so itself; returns it."""
        def is_elected():
            try:
                named = self.named()
            except (OSError, RedisError):
                return False
            return named[0] is not old and len(set(named)) == 1 and self.role(named[0]) == "master"
        wait_until(is_elected, 60, "another primary")
        return self.primaries()[0]

    def role(self, server):
        try:
            return server.call("ROLE")[0]
        except (OSError, RedisError):
            return None


class Cluster(Topology):
    name = "cluster"
    primary_count = 3

    def start(self):
        for _ in range(2 * self.primary_count):
            port = free_port()
            self.add_server("--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
                            "--cluster-port", str(free_port()), "--cluster-announce-ip", "127.0.0.1",
                            "--cluster-announce-port", str(port), "--cluster-node-timeout", "6000",
                            "--cluster-require-full-coverage", "no",
                            "--cluster-allow-replica-migration", "no",
                            "--repl-diskless-sync-delay", "0", relay_port=port).start()
        self.start_relay()
        first = self.servers[0]
        self._id = {server: server.call("CLUSTER", "MYID") for server in self.servers}
        for i, server in enumerate(self.servers):
            server.call("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
            if i < self.primary_count:
                server.call("CLUSTER", "ADDSLOTSRANGE", SLOTS * i // self.primary_count,
                            SLOTS * (i + 1) // self.primary_count - 1)
            bus_port = first.call("CONFIG", "GET", "cluster-port")[1]
            if server is not first:
                server.call("CLUSTER", "MEET", "127.0.0.1", first.port, bus_port)
        wait_until(lambda: all(len(self.nodes(server)) == len(self.servers) for server in self.servers),
                   60, "the nodes to know each other")
        for i, server in enumerate(self.servers[self.primary_count:]):
            server.insist("CLUSTER", "REPLICATE", self._id[self.servers[i]])
        wait_until(self._is_settled, 60, "the cluster")
        return self

    def _is_settled(self):
        return all(self.is_well(server) and (server.info("replication", "role") == "master"
                   or server.info("replication", "master_link_status") == "up") for server in self.servers)

    def is_well(self, server):
        try:
            info = server.call("CLUSTER", "INFO")
        except (OSError, RedisError):
            return False
        return "cluster_state:ok" in info and f"cluster_slots_ok:{SLOTS}" in info

    def urls(self, count):
        return ["cluster://" + ",".join(f"127.0.0.1:{self.relay_port[server]}" for server in self.servers)] * count

    def nodes(self, of=None):
        """[server, flags, id of its primary, its slot ranges] of each node, as one of them knows it."""
        known = []
        for line in (of or self._any_alive()).call("CLUSTER", "NODES").splitlines():
            identity, _, flags, primary, _, _, _, _, *slots = line.split()
            server = next((server for server in self.servers if self._id[server] == identity), None)
            ranges = [tuple(map(int, (slot + "-" + slot).split("-")[:2])) for slot in slots if "[" not in slot]
            known.append([server, flags.split(","), primary, ranges])
        return known

    def _any_alive(self):
        return next(server for server in self.servers if server.answers())

    def primaries(self):
        having_slots = [server for server, flags, _, ranges in self.nodes() if ranges and "master" in flags]
        return sorted(having_slots, key=self.servers.index)

    def replica_of(self, primary):
        """None while nobody has heard of one, as after another failover."""
        return next((server for server, _, its_primary, _ in self.nodes()
                     if its_primary == self._id[primary] and server.answers()), None)

    def id(self, server):
        return self._id[server]

    def stray_clients(self):
        return 0


TOPOLOGIES = {kind.name: kind for kind in (Single, Sentinels, Cluster)}
