"""What can go wrong, by name.

A fault is a generator: what stands before its `yield` makes it begin, and what stands behind
makes it end; the value that it yields is what the log says of it. `dice` is random, and is asked
before anything else, so that a fault is the same whenever its seed is.

  class        of faults of one class only one is there at a time
  seconds      how long it lasts, at least and at most
  only         the topologies that have it; None: all
  is_long      it ends when Redis has done something that takes its time
"""

import collections
import os
import signal
import time

import journal
from processes import wait_until
from redis_client import RedisError

Fault = collections.namedtuple("Fault", "name run kind seconds only is_long")
FAULTS = {}


def fault(kind, seconds, only=None, is_long=False):
    def register(run):
        FAULTS[run.__name__] = Fault(run.__name__, run, kind, seconds, only, is_long)
        return run
    return register


def pick(dice):
    """How to choose one of several that are not known yet."""
    number = dice.randrange(1 << 30)
    return lambda choices: choices[number % len(choices)]


# ---- Redis itself


@fault("redis", (0.2, 1.2))
def redis_stopped(world, dice):
    chosen = pick(dice)
    server = chosen(world.topology.primaries())
    server.signal(signal.SIGSTOP)
    yield f"redis{world.topology.servers.index(server)}"
    server.signal(signal.SIGCONT)


@fault("redis", (0.1, 0.8))
def redis_killed(world, dice):
    """Its data are still there when it comes back."""
    chosen = pick(dice)
    server = chosen(world.topology.primaries())
    server.kill()
    yield f"redis{world.topology.servers.index(server)}"
    server.start()
    wait_until(lambda: world.topology.is_well(server), 20, "Redis to count again")


@fault("redis", (0.1, 0.5), only=("single",))
def redis_killed_and_emptied(world, dice):
    server = world.topology.servers[0]
    begin = journal.now()
    server.kill()
    server.forget_data()
    yield
    server.start()
    world.topology.lost(begin, "restart without persistence")


@fault("redis", (0, 0))
def data_flushed(world, dice):
    begin = journal.now()
    for server in world.topology.primaries():
        server.insist("FLUSHALL")
    world.topology.lost(begin, "FLUSHALL")
    yield


@fault("redis", (0, 0))
def scripts_flushed(world, dice):
    for server in world.topology.primaries():
        server.insist("SCRIPT", "FLUSH")
    yield


@fault("redis", (0.2, 0.8))
def clients_killed(world, dice):
    """Again and again, for a while."""
    end = time.monotonic() + dice.uniform(0, 0.6)
    while True:
        for server in world.topology.primaries():
            server.insist("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        if time.monotonic() >= end:
            break
        time.sleep(0.1)
    yield


@fault("redis", (0.2, 1.2))
def out_of_memory(world, dice):
    primaries = world.topology.primaries()
    for server in primaries:
        server.insist("CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", "1")
    yield
    for server in primaries:
        server.insist("CONFIG", "SET", "maxmemory", "0")


@fault("redis", (0.2, 1.2), only=("single",))
def read_only(world, dice):
    server = world.topology.servers[0]
    server.insist("REPLICAOF", "127.0.0.1", "1")
    yield
    server.insist("REPLICAOF", "NO", "ONE")


# ---- another server takes over


def _when_all_have_moved(world, begin):
    """Those who have not heard of another primary go on counting with the old one, until it sends
    them away. For their requests that are under way then, that is a fault of its own."""
    strays, seen_at = 0, begin

    def have_moved():
        nonlocal strays, seen_at
        now = journal.now()
        try:
            count = world.topology.stray_clients()
        except (OSError, RedisError):
            return False
        if count < strays:
            world.log.event("fault", name="sent away", begin=seen_at, end=journal.now(), detail="")
        strays, seen_at = count, now
        return count == 0

    wait_until(have_moved, 60, "all workers to leave the old primary")
    world.topology.lost(begin, "failover")


@fault("redis", (0, 0), only=("sentinel",), is_long=True)
def sentinel_failover(world, dice):
    is_told = dice.random() < 0.7
    asked = dice.randrange(3)
    topology = world.topology
    topology.wait_until_whole()
    begin = journal.now()
    old = topology.primaries()[0]
    topology.sentinels[asked].insist("SENTINEL", "FAILOVER", topology.primary_name, seconds=40)
    new = topology.wait_for_election(old)
    if is_told:  # otherwise the Sentinels do it, some ten seconds later
        old.insist("REPLICAOF", "127.0.0.1", topology.relay_port[new])
    yield "the old primary is told" if is_told else "the old primary is not told"
    world.later(lambda: _when_all_have_moved(world, begin))


@fault("redis", (0, 0), only=("sentinel",), is_long=True)
def primary_lost(world, dice):
    """The Sentinels find out by themselves."""
    topology = world.topology
    topology.wait_until_whole()
    begin = journal.now()
    old = topology.primaries()[0]
    old.kill()
    try:
        new = topology.wait_for_election(old)
    except TimeoutError:
        old.start()
        raise
    yield

    def come_back():
        old.start("--replicaof", "127.0.0.1", str(topology.relay_port[new]))
        _when_all_have_moved(world, begin)
    world.later(come_back)


@fault("redis", (0, 0), only=("cluster",), is_long=True)
def cluster_failover(world, dice):
    """In good order: nothing may be lost by it."""
    _cluster_failover(world, dice)
    yield


@fault("redis", (0, 0), only=("cluster",), is_long=True)
def cluster_takeover(world, dice):
    """Without asking anybody."""
    begin = journal.now()
    _cluster_failover(world, dice, "TAKEOVER")
    world.topology.lost(begin, "failover")
    yield


def _cluster_failover(world, dice, *how):
    chosen = pick(dice)
    topology = world.topology
    old = chosen(topology.primaries())
    wait_until(lambda: topology.replica_of(old), 30, "a replica to be known")
    new = topology.replica_of(old)
    wait_until(lambda: new.info("replication", "master_link_status") == "up", 30, "the replica to be ready")
    new.insist("CLUSTER", "FAILOVER", *how)

    def is_done():
        views = [topology.nodes(server) for server in topology.servers if server.answers()]
        return all(node[0] is not old or "slave" in node[1] for view in views for node in view)
    try:
        wait_until(is_done, 15, "the replica to take over")
    except TimeoutError:
        world.log.event("remark", text="the cluster has not done the failover")


@fault("redis", (0, 0), only=("cluster",), is_long=True)
def slots_moved(world, dice):
    """Slots with keys that are in use, one after the other, while keys are asked for."""
    choose_source, choose_target = pick(dice), pick(dice)
    count = dice.randrange(3, 8)
    topology = world.topology
    primaries = topology.primaries()
    source = choose_source(primaries)
    target = choose_target([server for server in primaries if server is not source])
    used = sorted({source.call("CLUSTER", "KEYSLOT", key) for key in source.call("KEYS", "*")})
    for slot in used[:count]:
        _move_slot(topology, slot, source, target)
    yield f"{len(used[:count])} slots"


def _move_slot(topology, slot, source, target):
    target.insist("CLUSTER", "SETSLOT", slot, "IMPORTING", topology.id(source))
    source.insist("CLUSTER", "SETSLOT", slot, "MIGRATING", topology.id(target))
    while True:
        keys = source.insist("CLUSTER", "GETKEYSINSLOT", slot, 1)
        if not keys:
            break
        time.sleep(0.02)  # so that some are on one side and some on the other
        source.insist("MIGRATE", "127.0.0.1", target.port, keys[0], 0, 2000)
    for server in (target, source):
        server.insist("CLUSTER", "SETSLOT", slot, "NODE", topology.id(target))
    for server in topology.primaries():
        server.insist("CLUSTER", "SETSLOT", slot, "NODE", topology.id(target))


# ---- the network


def _weather(world, dice, mode, **how):
    """For all servers, or for one."""
    is_for_one, chosen = dice.random() < 0.4, pick(dice)
    servers = world.topology.servers
    port = world.topology.relay_port[chosen(servers)] if is_for_one else None
    world.topology.relay.order(mode=mode, port=port, **how)
    yield " ".join([*(f"{name} {value}" for name, value in how.items()), "for one" if port else "for all"])
    world.topology.relay.order(mode="fine")


@fault("network", (0.5, 2))
def slow_network(world, dice):
    return _weather(world, dice, "delay", ms=dice.randrange(5, 80), jitter=dice.randrange(50), loss=0)


@fault("network", (0.5, 2))
def lossy_network(world, dice):
    return _weather(world, dice, "delay", ms=1, jitter=dice.randrange(10), loss=round(dice.uniform(0.02, 0.2), 3))


@fault("network", (0.4, 1.5))
def network_slower_than_timeout(world, dice):
    return _weather(world, dice, "delay", ms=dice.randrange(200, 400), jitter=100, loss=0)


@fault("network", (0.4, 1.5))
def replies_in_slices(world, dice):
    return _weather(world, dice, "slices")


@fault("network", (0.3, 1.5))
def cut_in_mid_reply(world, dice):
    return _weather(world, dice, "cut", chance=round(dice.uniform(0.05, 0.5), 3))


@fault("network", (0.3, 1.2))
def black_hole(world, dice):
    return _weather(world, dice, "hole")


# ---- clocks


def _step(world, who, clock, before, after):
    begin = journal.now()
    clock.set(after)
    world.log.event("clock", who=who, step=after - before, begin=begin, end=journal.now())


@fault("clock", (0.3, 2))
def redis_clock_set(world, dice):
    """Forwards or backwards, and back again."""
    offset = round(dice.uniform(0.05, 2) * 1e6) * dice.choice((-1, 1))
    _step(world, "redis", world.topology.clock, 0, offset)
    yield f"by {offset / 1e6:.3f} s"
    _step(world, "redis", world.topology.clock, offset, 0)


@fault("nginx", (0.3, 2))
def nginx_clock_set(world, dice):
    chosen = pick(dice)
    offset = round(dice.uniform(0.5, 100000) * 1e6) * dice.choice((-1, 1))
    nginx = chosen(world.servers)
    _step(world, f"nginx{nginx.number}", nginx.clock, 0, offset)
    yield f"nginx{nginx.number} by {offset / 1e6:.3f} s"
    _step(world, f"nginx{nginx.number}", nginx.clock, offset, 0)


# ---- nginx


@fault("nginx", (0, 0))
def reloaded(world, dice):
    """With other limits, all servers but the last: its workers show what long lives lead to."""
    chosen = dice.sample(world.servers[:-1], dice.randrange(1, len(world.servers)))
    for nginx in chosen:
        begin = journal.now()
        nginx.reload()
        world.limits_changed(nginx, begin)
    yield ", ".join(f"nginx{nginx.number}" for nginx in chosen)


@fault("nginx", (0, 0))
def worker_killed(world, dice):
    choose_nginx, choose_worker = pick(dice), pick(dice)
    nginx = choose_nginx(world.servers[:-1])
    pid = choose_worker(nginx.workers())
    world.log.event("worker_killed", server=nginx.number, pid=pid, at=journal.now())
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: pid not in nginx.workers() and len(nginx.workers()) >= 2, 10, "another worker")
    yield f"nginx{nginx.number}"


@fault("nginx", (1, 1.5))
def memory_full(world, dice):
    """More new keys than the memory has room for: those of others are forgotten."""
    nginx = dice.choice(world.servers)
    begin = journal.now()
    world.load.order("flood", nginx.number)
    yield f"nginx{nginx.number}"
    world.load.order("flood", -1)
    time.sleep(0.1)  # what is under way
    world.log.event("lost", store="memory", server=nginx.number, why="memory full",
                    begin=begin, end=journal.now())


# ---- clients


@fault("clients", (0.5, 2))
def clients_abort(world, dice):
    share = round(dice.uniform(0.05, 0.4), 2)
    world.load.order("abort", share)
    yield f"{share} of all"
    world.load.order("abort", 0)


@fault("clients", (0.5, 2))
def http2_resets(world, dice):
    world.load.order("http2", dice.randrange(2, 7))
    yield
    world.load.order("http2", 0)
