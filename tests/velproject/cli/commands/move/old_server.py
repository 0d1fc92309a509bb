"""A server that greets clients as an old version of PostgreSQL, and answers each query with OK."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def _parameter(name: str, value: str) -> bytes:
    return _message(b"S", f"{name}\0{value}\0".encode())


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (more := connection.recv(size - len(data))):
        data += more
    return data


def _serve(listening: socket.socket, version: str) -> None:
    ready = _message(b"Z", b"I")
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return  # closed
        with connection:
            (size,) = struct.unpack("!I", _read(connection, 4))
            _read(connection, size - 4)
            connection.sendall(
                _message(b"R", struct.pack("!I", 0))
                + _parameter("server_version", version)
                + _parameter("client_encoding", "UTF8")
                + _parameter("TimeZone", "UTC")
                + ready
            )
            while (head := _read(connection, 5)) and head[:1] != b"X":
                _read(connection, struct.unpack("!I", head[1:])[0] - 4)
                connection.sendall(_message(b"C", b"SET\0") + ready)


@contextmanager
def old_server(version: str) -> Iterator[int]:
    """Yield the port of the server on this machine."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=_serve, args=(listening, version), daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()
