"""Just enough of Redis's protocol to give orders to the servers of a run."""

import socket


class RedisError(Exception):
    """What Redis says if it does not like a command."""


class RedisClient:
    def __init__(self, port, timeout=1.0):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout)
        self._file = self._socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._file.close()
        self._socket.close()

    def call(self, *words):
        encoded = [str(word).encode() for word in words]
        self._socket.sendall(
            b"*%d\r\n" % len(encoded)
            + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded))
        return self._read()

    def _read(self):
        line = self._file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("Redis hung up")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise RedisError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"+":
            return rest.decode()
        if kind == b"$":
            size = int(rest)
            return None if size < 0 else self._file.read(size + 2)[:-2].decode(errors="replace")
        size = int(rest)
        return None if size < 0 else [self._read() for _ in range(size)]
