"""A client that speaks just enough HTTP/2 to send requests and to reset them.

Nothing of HPACK is decoded but the status. So of an answer with 200 it is not known whether the
request was counted.
"""

import selectors
import socket
import struct

import journal

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
CANCEL = 8
INDEXED_STATUS = {0x88: 200, 0x8C: 400, 0x8D: 404, 0x8E: 500}


def frame(kind, flags, stream, payload=b""):
    return struct.pack("!I", len(payload))[1:] + struct.pack("!BBI", kind, flags, stream) + payload


def _literal(index, value):
    """A header whose name is in HPACK's table, neither indexed nor compressed."""
    return bytes([index, len(value)]) + value.encode()


def request_headers(path):
    method_get, scheme_http, authority, path_index = b"\x82", b"\x86", 1, 4
    return method_get + scheme_http + _literal(path_index, path) + _literal(authority, "chaos")


def status_of(block):
    """Of an answer: :status comes first. 0 if it is written in a way that is not known here."""
    if block[0] in INDEXED_STATUS:
        return INDEXED_STATUS[block[0]]
    if block[0] & 0x0F == 8 and block[1] == 3:
        return int(block[2:5])
    return 0


class Connection:
    def __init__(self, load, server, port):
        self.load, self.server = load, server
        self.streams = {}  # id -> (location, key, send)
        self.next_stream = 1
        self.buffer = b""
        self.resets = []
        self.is_closed = False
        self.socket = socket.create_connection(("127.0.0.1", port), 5)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(PREFACE + frame(SETTINGS, 0, 0)
                            + frame(WINDOW_UPDATE, 0, 0, struct.pack("!I", 0x7FFF0000)))
        self.socket.setblocking(False)
        load.selector.register(self.socket, selectors.EVENT_READ, self)

    def ask(self, location, key, query, is_reset):
        if self.is_closed:
            return
        stream, self.next_stream = self.next_stream, self.next_stream + 2
        text = frame(HEADERS, END_STREAM | END_HEADERS, stream, request_headers(f"/{location}?{query}"))
        if is_reset:
            text += frame(RST_STREAM, 0, stream, struct.pack("!I", CANCEL))
        send = journal.now()
        self.streams[stream] = (location, key, send)
        self._send(text)
        if is_reset and stream in self.streams:
            self._write(stream, 0, "?", "aborted")

    def _send(self, data):
        try:
            self.socket.send(data)
        except OSError:
            self.close()

    def _write(self, stream, http, status, end):
        location, key, send = self.streams.pop(stream)
        self.load.journal.request(
            (self.server, location, key, send, journal.now(), http, status, "-", "-", 0, end))

    def ready(self):
        try:
            data = self.socket.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        self.buffer += data
        while len(self.buffer) >= 9 and not self.is_closed:
            size = int.from_bytes(self.buffer[:3], "big")
            if len(self.buffer) < 9 + size:
                return
            kind, flags, stream = struct.unpack("!BBI", self.buffer[3:9])
            payload, self.buffer = self.buffer[9 : 9 + size], self.buffer[9 + size :]
            self._take(kind, flags, stream, payload)

    def _take(self, kind, flags, stream, payload):
        if kind == HEADERS and stream in self.streams:
            self._write(stream, status_of(payload), "?", "answered")
        elif kind == SETTINGS and not flags & ACK:
            self._send(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            self._send(frame(PING, ACK, 0, payload))
        elif kind == GOAWAY:
            self.close()

    def close(self):
        if self.is_closed:
            return
        self.is_closed = True
        for stream in list(self.streams):
            self._write(stream, 0, "?", "aborted")
        self.load.selector.unregister(self.socket)
        self.socket.close()
