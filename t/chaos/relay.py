"""relay.py LISTEN:TARGET...: a network between nginx and Redis that can be made bad.

Orders come as JSON, one per line, and each is confirmed with a line:

  {"mode": "fine"}
  {"mode": "delay", "ms": 40, "jitter": 30, "loss": 0.05}   loss: what TCP would send again
  {"mode": "slices"}                                         replies byte by byte
  {"mode": "cut", "chance": 0.1}                             connections, in mid-reply
  {"mode": "hole"}                                           nothing goes through, nor is refused

An order holds for all connections, or with "port" for those to that port we listen on. What a
bad network has kept is delivered when it is fine again.
"""

import heapq
import json
import random
import selectors
import socket
import sys
import time

CHUNK = 65536
RETRANSMISSION = 0.2
FINE = {"mode": "fine"}


class Way:
    """One direction of a connection."""

    def __init__(self, source, target, is_reply):
        self.source, self.target, self.is_reply = source, target, is_reply
        self.kept = []  # (when to deliver, bytes); b"" is the end
        self.unsent = b""
        self.peer_connected = True


class Relay:
    def __init__(self, pairs):
        self.selector = selectors.DefaultSelector()
        self.weather = {}
        self.dice = random.Random(0)
        self.ways = {}  # socket -> the way that begins there
        self.port_of = {}
        self.connecting = set()
        self.due = []
        self.listeners = {}
        self.serial = 0
        for port, target in pairs:
            listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))
            listener.listen(256)
            listener.setblocking(False)
            self.listeners[listener] = (port, target)
            self.weather[port] = FINE
            self.selector.register(listener, selectors.EVENT_READ, self.accept)
        sys.stdin.reconfigure(line_buffering=True)
        self.selector.register(sys.stdin, selectors.EVENT_READ, self.obey)

    def run(self):
        while True:
            timeout = max(0, self.due[0][0] - time.monotonic()) if self.due else None
            for key, mask in self.selector.select(timeout):
                if key.fileobj in self.listeners or key.fileobj is sys.stdin or key.fileobj in self.ways:
                    key.data(key.fileobj, mask)
            self.deliver_what_is_due()

    def obey(self, *_):
        line = sys.stdin.readline()
        if not line:
            sys.exit(0)
        order = json.loads(line)
        for port in [order["port"]] if order.get("port") else list(self.weather):
            self.weather[port] = order
        for way in list(self.ways.values()):
            if self.is_open(way):
                self.watch(way)
                if self.mode(way) == "fine":
                    way.kept = [(0, data) for _, data in way.kept]
                    self.deliver(way)
        for listener, (port, _) in self.listeners.items():
            self.set_events(listener, 0 if self.weather[port]["mode"] == "hole" else selectors.EVENT_READ)
        print("done", flush=True)

    def mode(self, way):
        return self.weather[self.port_of[way.source]]["mode"]

    def is_open(self, way):
        return self.ways.get(way.source) is way

    def set_events(self, sock, events):
        try:
            key = self.selector.get_key(sock)
        except KeyError:
            if events:
                handler = self.accept if sock in self.listeners else self.ready
                self.selector.register(sock, events, handler)
            return
        if not events:
            self.selector.unregister(sock)
        elif key.events != events:
            self.selector.modify(sock, events, key.data)

    def watch(self, way):
        """Both ends of it, for whatever they can do now."""
        for sock in (way.source, way.target):
            forth, back = self.ways[sock], self.ways[self.ways[sock].target]
            events = 0
            if self.mode(forth) != "hole":
                if forth.peer_connected and not forth.unsent:
                    events |= selectors.EVENT_READ
                if back.unsent or sock in self.connecting:
                    events |= selectors.EVENT_WRITE
            self.set_events(sock, events)

    def accept(self, listener, _):
        port, target = self.listeners[listener]
        try:
            client, _ = listener.accept()
        except OSError:
            return
        server = socket.socket()
        for sock in (client, server):
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.port_of[sock] = port
        forth, back = Way(client, server, False), Way(server, client, True)
        self.ways[client], self.ways[server] = forth, back
        forth.peer_connected = back.peer_connected = False
        self.connecting.add(server)
        server.connect_ex(("127.0.0.1", target))
        self.watch(forth)

    def ready(self, sock, mask):
        way = self.ways[sock]
        if sock in self.connecting:
            if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                self.close(way)
                return
            if mask & selectors.EVENT_WRITE:
                self.connecting.discard(sock)
                way.peer_connected = self.ways[way.target].peer_connected = True
                self.watch(way)
            return
        if mask & selectors.EVENT_WRITE:
            self.deliver(self.ways[way.target])
        if mask & selectors.EVENT_READ and self.is_open(way):
            self.read(way)

    def read(self, way):
        try:
            data = way.source.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            self.close(way)
            return
        weather = self.weather[self.port_of[way.source]]
        at = 0
        if weather["mode"] == "delay":
            wait = weather["ms"] + self.dice.random() * weather["jitter"]
            at = time.monotonic() + wait / 1000
            if self.dice.random() < weather["loss"]:
                at += RETRANSMISSION
        if way.kept:
            at = max(at, way.kept[-1][0])
        way.kept.append((at, data))
        if at:
            self.serial += 1
            heapq.heappush(self.due, (at, self.serial, way))
        if not data:
            self.set_events(way.source, 0)
        self.deliver(way)

    def deliver_what_is_due(self):
        while self.due and self.due[0][0] <= time.monotonic():
            _, _, way = heapq.heappop(self.due)
            if self.is_open(way):
                self.deliver(way)

    def deliver(self, way):
        if self.mode(way) == "hole":
            return
        try:
            while way.unsent or (way.kept and way.kept[0][0] <= time.monotonic()):
                if not way.unsent:
                    _, way.unsent = way.kept.pop(0)
                    if not way.unsent:
                        self.close(way)
                        return
                    if self.is_to_be_cut(way):
                        way.target.send(way.unsent[: len(way.unsent) // 2])
                        self.close(way)
                        return
                way.unsent = self.send(way)
                if way.unsent:
                    break
        except OSError:
            self.close(way)
            return
        if not (way.kept and not way.kept[-1][1]):
            self.watch(way)

    def is_to_be_cut(self, way):
        weather = self.weather[self.port_of[way.source]]
        return way.is_reply and weather["mode"] == "cut" and self.dice.random() < weather["chance"]

    def send(self, way):
        """What could not be sent."""
        data = way.unsent
        size = 1 if way.is_reply and self.mode(way) == "slices" else len(data)
        sent = 0
        try:
            while sent < len(data):
                sent += way.target.send(data[sent : sent + size])
        except BlockingIOError:
            pass
        return data[sent:]

    def close(self, way):
        for sock in (way.source, way.target):
            self.set_events(sock, 0)
            self.connecting.discard(sock)
            self.ways.pop(sock, None)
            self.port_of.pop(sock, None)
            # with a reset, if the other side has gone on sending
            sock.close()


if __name__ == "__main__":
    Relay([tuple(map(int, pair.split(":"))) for pair in sys.argv[1:]]).run()
