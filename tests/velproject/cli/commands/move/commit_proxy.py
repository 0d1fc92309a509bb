"""A proxy in front of PostgreSQL that loses the connection of a client at its first COMMIT."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, urlsplit

import psycopg

Moment = Literal["before", "after", "after, and the server is gone"]
_KILL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"


class Proxy:
    """Forwards connections until a client commits, and then ends its backend.

    `moment` is "before" if the server does not get the COMMIT.
    """

    def __init__(self, server_url: str, database_url: str, moment: Moment) -> None:
        self.was_used = False
        self._lost: socket.socket | None = None
        self._has_committed = threading.Event()
        self._server_url, self._moment = server_url, moment
        self._name = urlsplit(database_url).path.lstrip("/")
        options = parse_qs(urlsplit(database_url).query)
        port = options.get("port", ["5432"])[0]
        self._path = str(Path(options["host"][0]) / f".s.PGSQL.{port}")
        self._listening = socket.create_server(("127.0.0.1", 0))
        port = self._listening.getsockname()[1]
        self.url = f"postgresql://vel@127.0.0.1:{port}/{self._name}?sslmode=disable"
        self.url += "&gssencmode=disable"
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return  # closed
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._path)
            for one in (
                threading.Thread(target=self._forward, args=(client, server), daemon=True),
                threading.Thread(target=self._answer, args=(client, server), daemon=True),
            ):
                self._threads.append(one)
                one.start()

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        """Copy what the client sends."""
        with client, server:
            while data := _received(client):
                if not self.was_used and b"COMMIT" in data:
                    self.was_used = True
                    self._lose(server, data)
                    break
                server.sendall(data)
            _shut_down(client, server)

    def _lose(self, server: socket.socket, data: bytes) -> None:
        if self._moment != "before":
            self._lost = server
            server.sendall(data)
            self._has_committed.wait()
        if self._moment == "after, and the server is gone":
            self._listening.shutdown(socket.SHUT_RDWR)
            self._listening.close()
        with psycopg.connect(self._server_url, autocommit=True) as other:
            other.execute(_KILL, [self._name])

    def _answer(self, client: socket.socket, server: socket.socket) -> None:
        """Copy what the server sends. The answer to the COMMIT does not reach the client."""
        while data := _received(server):
            if self._lost is server and b"COMMIT\0" in data:
                self._has_committed.set()
                return
            try:
                client.sendall(data)
            except OSError:
                return  # closed by `_forward`
        _shut_down(client, server)

    def close(self) -> None:
        _shut_down(self._listening)
        self._listening.close()
        for thread in self._threads:
            thread.join()


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(1 << 16)
    except OSError:
        return b""


def _shut_down(*connections: socket.socket) -> None:
    for one in connections:
        try:
            one.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the other end was faster


@contextmanager
def losing_the_commit(server_url: str, database_url: str, moment: Moment) -> Iterator[Proxy]:
    """Yield the proxy of the database. Its `url` leads to it."""
    proxy = Proxy(server_url, database_url, moment)
    try:
        yield proxy
    finally:
        proxy.close()
